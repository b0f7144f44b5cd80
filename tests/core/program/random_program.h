// Random programs with their results, computed element by element.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "core/io/source.h"
#include "core/program/program.h"
#include "core/program/program_builder.h"
#include "core/tensor/cast.h"

namespace shw::test {

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool one_in(std::int64_t n) { return pick(1, n) == 1; }
  template <class Values>
  void shuffle(Values& values) {
    std::shuffle(values.begin(), values.end(), random_);
  }

 private:
  std::mt19937 random_;
};

// Cuts at random along every dim.
inline std::vector<Box> random_boxes(const Extents& sizes, Dice& dice) {
  std::vector<Box> boxes{whole(sizes)};
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    std::vector<Box> finer;
    for (const Box& box : boxes) {
      std::int64_t cut = box.sizes[d] < 2 ? 0 : dice.pick(0, box.sizes[d] - 1);
      Box low = box, high = box;
      low.sizes[d] = cut;
      high.offsets[d] += cut;
      high.sizes[d] -= cut;
      if (cut > 0) finer.push_back(low);
      finer.push_back(high);
    }
    boxes = std::move(finer);
  }
  return boxes;
}

// Strides of a source box whose dims are in any order, with gaps; some run backwards, some repeat.
struct RandomStrides {
  Extents strides;
  std::int64_t first = 0, reach = 0;
};
inline RandomStrides random_strides(const Extents& sizes, std::int64_t element, Dice& dice) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0u);
  if (dice.one_in(2)) dice.shuffle(order);
  RandomStrides made{Extents(sizes.size()), 0, element};
  std::int64_t step = element * dice.pick(1, 2);
  for (std::size_t i = order.size(); i-- > 0;) {
    std::size_t d = order[i];
    if (dice.one_in(12)) continue;  // repeats
    made.strides[d] = step;
    made.reach += (sizes[d] - 1) * step;
    if (dice.one_in(8)) {
      made.first += (sizes[d] - 1) * step;
      made.strides[d] = -step;
    }
    step *= sizes[d] + dice.pick(0, 1);
  }
  return made;
}

// Three outputs in two files out of one source file; copies, casts and zeros.
inline Program random_program(Dice& dice, const Extents* sizes_of_all = nullptr) {
  ProgramBuilder builder;
  for (int o = 0; o < 3; ++o) {
    Extents sizes(static_cast<std::size_t>(dice.pick(0, 4)));
    for (auto& size : sizes) size = dice.pick(1, 6);
    if (sizes_of_all != nullptr) sizes = *sizes_of_all;
    Extents shape = sizes, offsets = sizes;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      offsets[d] = dice.pick(0, 3);
      shape[d] += offsets[d] + dice.pick(0, 2);
    }
    Dtype dtype = dice.one_in(2) ? Dtype::kFloat32 : Dtype::kBfloat16;
    OutputId output =
        builder.add_output("tensor" + std::to_string(o), dtype, shape, {offsets, sizes});
    builder.place(output, o == 0 ? "b" : "a", static_cast<std::uint64_t>(o) * 100'000'000);
    std::vector<Box> boxes = random_boxes(sizes, dice);
    dice.shuffle(boxes);
    for (const Box& box : boxes) {
      if (dice.one_in(5)) {
        builder.add_zeros(output, box);
        continue;
      }
      Dtype from = dice.one_in(3) ? Dtype::kFloat32 : dtype;
      RandomStrides strides = random_strides(box.sizes, size_of(from), dice);
      std::int64_t slack = dice.pick(0, 3);
      auto length = static_cast<std::uint64_t>(strides.reach + slack);
      SourceId source =
          builder.add_stored(0, "source", static_cast<std::uint64_t>(dice.pick(0, 99)), length);
      builder.add_copy(output, box, source, from, strides.first + (slack > 0 ? 1 : 0),
                       strides.strides);
    }
  }
  return builder.take();
}

// The payload of an output, element by element, from the bytes of the one source file.
inline Bytes payload_slowly(const Program& program, OutputId output, const Bytes& file) {
  const ProgramOutput& out = program.output(output);
  Extents sizes = copy_of(program.sizes(out));
  Bytes made(out.length, std::byte{0x77});
  for (const ProgramJob& job : program.jobs) {
    if (job.output != output) continue;
    ExtentsView box = program.sizes(job), at = program.at(job);
    for (std::int64_t i = 0; i < *volume(box); ++i) {
      std::int64_t rest = i, target = 0, from = job.first;
      Extents index(box.size());
      for (std::size_t d = box.size(); d-- > 0; rest /= box[d]) {
        index[d] = rest % box[d];
        from += index[d] * (job.op == ElementOp::kConstant ? 0 : program.source_strides(job)[d]);
      }
      for (std::size_t d = 0; d < box.size(); ++d) target = target * sizes[d] + at[d] + index[d];
      std::byte* place = made.data() + target * size_of(out.dtype);
      std::memset(place, 0, size_of(out.dtype));
      if (job.op == ElementOp::kConstant) continue;
      auto begin = static_cast<std::ptrdiff_t>(program.source(job.source).offset) + from;
      Bytes element(file.begin() + begin, file.begin() + begin + size_of(job.from));
      auto cast = cast_elements(job.from, element, job.to);
      REQUIRE(cast.has_value());
      std::copy(cast->begin(), cast->end(), place);
    }
  }
  return made;
}

}  // namespace shw::test
