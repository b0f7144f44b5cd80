// Slabs with random jobs and their results, computed element by element. Without doctest, because
// tests/gpu/device.cpp runs the same on a real GPU.
#pragma once

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/exec/change_elements.h"
#include "core/exec/executor.h"
#include "core/tensor/cast.h"
#include "core/tensor/statistics.h"
#include "core/tensor/strided_copy.h"

namespace shw::test {

struct SlabCase {
  std::vector<std::byte> in, out;
  std::vector<TileJob> tiles, elements;
  std::vector<StatisticsJob> numbers;
  std::vector<StatisticsSums> counted;  // expected statistics of each job

  SlabWork work(std::vector<std::byte>& made) const { return {in, tiles, elements, made}; }
};

class SlabDice {
 public:
  explicit SlabDice(std::uint64_t seed) : random_(seed) {}
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool one_in(std::int64_t n) { return pick(1, n) == 1; }
  std::uint64_t bits() { return random_(); }

 private:
  std::mt19937_64 random_;
};

inline constexpr Dtype kFloats[] = {
    Dtype::kFloat64,      Dtype::kFloat32,    Dtype::kFloat16,        Dtype::kBfloat16,
    Dtype::kFloat8E4m3fn, Dtype::kFloat8E5m2, Dtype::kFloat8E4m3fnuz, Dtype::kFloat8E5m2fnuz};
inline constexpr Dtype kOfSize[] = {Dtype::kUint8, Dtype::kInt16, Dtype::kFloat32, Dtype::kInt64,
                                    Dtype::kComplex128};

inline Dtype any_float(SlabDice& dice) {
  return kFloats[dice.pick(0, std::size(kFloats) - 1)];
}

// Random changes of elements: mostly copies, then casts over other dtypes, scalings, constants.
inline TileJob random_change(SlabDice& dice) {
  TileJob job;
  if (!dice.one_in(3)) {
    job.from = job.to = kOfSize[dice.pick(0, 4)];
    if (dice.one_in(8)) {
      job.op = ElementOp::kConstant;
      const std::size_t size = size_of(job.to);
      std::uint64_t bits[2] = {dice.bits(), dice.bits()};
      if (dice.one_in(4)) bits[0] = bits[1] = 0;
      std::memcpy(job.constant, bits, size);
    }
    return job;
  }
  job.op = dice.one_in(3) ? ElementOp::kScale : ElementOp::kCast;
  job.from = any_float(dice);
  Dtype now = job.from;
  if (job.op == ElementOp::kScale) {
    now = Dtype::kFloat32;
    job.factor = static_cast<float>(dice.pick(-1000, 1000)) / 37.0f;
    if (dice.one_in(6)) job.factor = std::numeric_limits<float>::quiet_NaN();
  }
  for (std::size_t hop = 0; hop < 3 && dice.one_in(3); ++hop) {
    const Dtype next = any_float(dice);
    if (next == now) break;
    job.via[hop] = now = next;
  }
  do job.to = any_float(dice);
  while (job.op == ElementOp::kCast && job.to == now);
  return job;
}

struct Strides {
  std::vector<std::int64_t> strides;
  std::int64_t first = 0, reach = 0;  // bytes or elements from the lowest to after the highest
};

// Dims in any order, with gaps; sources may also run backwards or repeat. Plain ones are only in
// another order.
inline Strides random_strides(const std::vector<std::int64_t>& sizes, std::int64_t element,
                              bool is_source, bool plain, SlabDice& dice) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0u);
  if (dice.one_in(2)) {
    for (std::size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1],
                order[static_cast<std::size_t>(dice.pick(0, static_cast<std::int64_t>(i) - 1))]);
  }
  Strides made{std::vector<std::int64_t>(sizes.size()), 0, element};
  std::int64_t step = element * (!plain && dice.one_in(6) ? 2 : 1);
  for (std::size_t i = order.size(); i-- > 0;) {
    const std::size_t d = order[i];
    if (is_source && !plain && dice.one_in(16)) continue;
    made.strides[d] = step;
    made.reach += (sizes[d] - 1) * step;
    if (is_source && !plain && dice.one_in(16)) {
      made.first += (sizes[d] - 1) * step;
      made.strides[d] = -step;
    }
    step *= sizes[d];
    if (plain) continue;
    if (dice.one_in(4)) step += element * dice.pick(1, 20);
    if (dice.one_in(3)) step = (step + 63) / 64 * 64;
  }
  return made;
}

inline void add_job(SlabCase& slab, SlabDice& dice, std::int64_t most) {
  TileJob job = random_change(dice);
  const bool plain = dice.one_in(3);
  std::vector<std::int64_t> sizes(
      static_cast<std::size_t>(plain ? dice.pick(1, 2) : dice.pick(0, 4)));
  std::int64_t count = 1;
  for (std::int64_t& size : sizes) {
    const std::int64_t left = std::max<std::int64_t>(most / count, 1);
    size = dice.pick(1, std::min<std::int64_t>(left, dice.one_in(3)   ? 2000
                                                     : dice.one_in(2) ? 130
                                                                      : 5));
    if (plain || dice.one_in(3)) size = (size + 15) / 16 * 16;
    // A small outer dim, for interleaved parts.
    if (sizes.size() > 1 && dice.one_in(8)) size = std::int64_t{1} << dice.pick(1, 3);
    count *= size;
  }
  const auto before = static_cast<std::int64_t>(size_of(job.from)),
             after = static_cast<std::int64_t>(size_of(job.to));
  Strides source = random_strides(sizes, before, true, plain, dice);
  Strides target = random_strides(sizes, after, false, plain, dice);
  Strides index = random_strides(sizes, 1, false, plain, dice);
  std::int64_t in_at = static_cast<std::int64_t>(slab.in.size()),
               out_at = static_cast<std::int64_t>(slab.out.size());
  if (plain || !dice.one_in(3)) in_at = (in_at + 15) / 16 * 16;
  if (!plain && dice.one_in(8)) in_at += dice.pick(1, 15);
  out_at = (out_at + 15) / 16 * 16 + (!plain && dice.one_in(3) ? after * dice.pick(0, 3) : 0);
  if (job.op != ElementOp::kConstant)
    slab.in.resize(static_cast<std::size_t>(in_at + source.reach));
  slab.out.resize(static_cast<std::size_t>(out_at + target.reach));
  for_each_canonical_pair(
      pair_of(sizes, source.strides, in_at + source.first, target.strides, out_at),
      [&](const LayoutPair& pair) {
        job.layouts = pair;
        slab.tiles.push_back(job);
      });
  const std::int64_t first = dice.one_in(2) ? dice.pick(0, 1 << 20) * 64 : dice.pick(0, 1 << 30);
  for_each_canonical_pair(
      pair_of(sizes, source.strides, in_at + source.first, index.strides, first),
      [&](const LayoutPair& pair) {
        job.layouts = pair;
        slab.elements.push_back(job);
      });
}

// Random bits are rarely special values, so some words consist of values that are hard to cast.
inline void fill_slab(std::vector<std::byte>& bytes, SlabDice& dice) {
  const bool special = dice.one_in(3);
  for (std::size_t at = 0; at < bytes.size(); at += 4) {
    auto word = static_cast<std::uint32_t>(dice.bits());
    if (special && dice.one_in(4)) {
      constexpr std::uint32_t kOnes[] = {0,          0x80000000, 0x7F800000, 0xFF800000,
                                         0x7FC00001, 0xFF800001, 0x00000001, 0x007FFFFF,
                                         0x33000000, 0x477FE000, 0x7F7F7F7F, 0xFCFCFCFC};
      word = kOnes[dice.pick(0, std::size(kOnes) - 1)];
    }
    std::memcpy(bytes.data() + at, &word, std::min<std::size_t>(4, bytes.size() - at));
  }
}

// Counts element by element.
inline StatisticsSums count_slowly(const std::byte* at, Dtype dtype, std::uint64_t count) {
  StatisticsSums sums(dtype);
  const std::size_t size = size_of(dtype);
  for (std::uint64_t i = 0; i < count; ++i, at += size) {
    std::uint64_t bits[2] = {0, 0};
    std::memcpy(bits, at, size);
    if (size <= 8) {
      add_elements(sums, bits[0], 1);
      continue;
    }
    ++sums.elements;
    sums.zero += ((bits[0] | bits[1]) << 1) == 0 ? 1 : 0;
  }
  return sums;
}

// A part of the input, as elements of a random dtype at a random offset.
inline void add_numbers(SlabCase& slab, SlabDice& dice, std::int64_t most) {
  const auto bytes = static_cast<std::int64_t>(slab.in.size());
  Dtype dtype;
  do dtype = static_cast<Dtype>(dice.pick(1, static_cast<std::int64_t>(Dtype::kCount) - 1));
  while (size_of(dtype) == 0);
  const std::int64_t size = size_of(dtype);
  if (bytes < size) return;
  std::int64_t begin = dice.pick(0, bytes - size);
  if (!dice.one_in(4)) begin = begin / size * size;
  const std::int64_t count = dice.pick(1, std::min((bytes - begin) / size, most));
  slab.numbers.push_back(
      {dtype, static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(count), nullptr});
  slab.counted.push_back(
      count_slowly(slab.in.data() + begin, dtype, static_cast<std::uint64_t>(count)));
}

inline SlabCase random_slab(std::uint64_t seed, std::int64_t most_elements) {
  SlabDice dice(seed);
  SlabCase slab;
  const std::int64_t jobs = dice.pick(1, 4);
  for (std::int64_t i = 0; i < jobs; ++i) add_job(slab, dice, most_elements);
  fill_slab(slab.in, dice);
  for (std::int64_t left = dice.pick(0, 2); left > 0; --left)
    add_numbers(slab, dice, most_elements);
  return slab;
}

// Runs the slab element by element.
inline Fingerprint run_slowly(const SlabCase& slab, std::vector<std::byte>& out) {
  Fingerprint sum;
  std::byte made[16];
  auto make = [&](const TileJob& job, std::int64_t i) {
    const std::byte* from = slab.in.data() + byte_of(job.layouts.source, i);
    if (job.op == ElementOp::kConstant)
      std::memcpy(made, job.constant, size_of(job.to));
    else if (job.op == ElementOp::kCopy)
      std::memcpy(made, from, size_of(job.to));
    else
      convert_elements(job, from, size_of(job.from), made, size_of(job.to), 1);
  };
  for (const TileJob& job : slab.tiles) {
    for (std::int64_t i = 0; i < elements(job.layouts.target); ++i) {
      make(job, i);
      std::memcpy(out.data() + byte_of(job.layouts.target, i), made, size_of(job.to));
    }
  }
  for (const TileJob& job : slab.elements) {
    for (std::int64_t i = 0; i < elements(job.layouts.target); ++i) {
      make(job, i);
      add_run(sum, made, size_of(job.to),
              static_cast<std::uint64_t>(byte_of(job.layouts.target, i)), 1);
    }
  }
  return sum;
}

inline constexpr std::byte kPoison{0xA5};

// Differences between an executor's result and the expected one; empty if there are none.
inline std::string difference(Executor& executor, const SlabCase& slab,
                              const std::vector<std::byte>& wanted, const Fingerprint& sum) {
  std::vector<std::byte> made(slab.out.size(), kPoison);
  std::vector<StatisticsSums> counted;
  std::vector<StatisticsJob> numbers = slab.numbers;
  for (const StatisticsJob& job : numbers) counted.emplace_back(job.dtype);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i].sums = &counted[i];
  SlabWork work = slab.work(made);
  work.numbers = numbers;
  auto result = executor.run(work);
  if (!result) return result.error().message;
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (made[i] != wanted[i])
      return "byte " + std::to_string(i) + " of " + std::to_string(made.size()) + " is " +
             std::to_string(static_cast<int>(made[i])) + " and not " +
             std::to_string(static_cast<int>(wanted[i]));
  }
  for (std::size_t i = 0; i < counted.size(); ++i) {
    if (!(counted[i] == slab.counted[i]))
      return "the numbers of " + std::to_string(numbers[i].count) + " " +
             std::string(name(numbers[i].dtype)) + " from byte " +
             std::to_string(numbers[i].begin) + " on differ";
  }
  return *result == sum ? "" : "the fingerprint differs";
}

}  // namespace shw::test
