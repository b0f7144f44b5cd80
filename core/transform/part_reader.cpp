#include "core/transform/part_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/io/gather.h"
#include "core/tensor/cast.h"
#include "core/tensor/float_steps.h"
#include "core/tensor/strided_copy.h"
#include "core/tiles/blocks.h"

namespace shw {
namespace {

void repeat(const FromConstant& constant, std::int64_t count, std::size_t element, Bytes& to) {
  to.resize(static_cast<std::size_t>(count) * element);
  for (std::size_t at = 0; at < to.size(); at += element)
    std::memcpy(to.data() + at, constant.bits.data(), element);
}

}  // namespace

Result<ItemCursor*> PartReader::reader(std::uint32_t input) {
  if (readers_.size() < all_.inputs.size()) readers_.resize(all_.inputs.size());
  if (readers_[input] == nullptr)
    readers_[input] =
        std::make_unique<ItemCursor>(*all_.inputs[input], decoded_bytes_ / all_.inputs.size());
  return readers_[input].get();
}

// The box in the saved chunk; dims that the part does not have get one element.
Box PartReader::saved_box(const Part& part, const Box& box) {
  Box saved{part.first, Extents(part.first.size(), 1)};
  for (std::size_t d = 0; d < box.sizes.size(); ++d) {
    if (part.order[d] < 0) continue;
    auto e = static_cast<std::size_t>(part.order[d]);
    saved.offsets[e] += box.offsets[d] - part.box.offsets[d];
    saved.sizes[e] = box.sizes[d];
  }
  return saved;
}

bool PartReader::is_hole(const Part& part, const Box& box) {
  const auto* chunk = std::get_if<FromChunk>(&part.from);
  if (chunk == nullptr || part.scaling) return false;
  auto holder = reader(chunk->input);
  if (!holder || !(*holder)->is_hole(chunk->chunk, saved_box(part, box))) return false;
  // Casts zero, because not every dtype can represent it.
  Bytes zero(size_of(part.saved));
  Dtype now = part.saved;
  for (Dtype to : part.casts) {
    auto cast = cast_elements(now, zero, to);
    if (!cast) return false;
    zero = std::move(*cast);
    now = to;
  }
  return std::all_of(zero.begin(), zero.end(), [](std::byte b) { return b == std::byte{0}; });
}

Result<Extents> PartReader::read_raw(const Part& part, const Box& box, Bytes& to) {
  std::size_t element = size_of(part.saved);
  const Box saved = saved_box(part, box);
  if (const auto* chunk = std::get_if<FromChunk>(&part.from)) {
    SHW_TRY(ItemCursor * holder, reader(chunk->input));
    SHW_CHECK(holder->read(chunk->chunk, saved, to));
  } else {
    const FromFile& file = *part.file();
    SHW_TRY(auto source, all_.source().directory()->open(file.file));
    SHW_CHECK(read_box(*source, file.offset, file.sizes, saved, element, to));
  }
  const Extents strides = byte_strides(saved.sizes, element);
  Extents of_box;
  for (std::int64_t e : part.order)
    of_box.push_back(e < 0 ? 0 : strides[static_cast<std::size_t>(e)]);
  return of_box;
}

Result<const std::vector<float>*> PartReader::factors(std::uint32_t number) {
  auto [found, is_new] = factors_.try_emplace(number);
  if (!is_new) return &found->second;
  const TargetTensor& tensor = *all_.factors[number];
  std::vector<float> values(static_cast<std::size_t>(volume(tensor.shape).value_or(0)));
  Extents strides = row_major_strides(tensor.shape);
  Bytes bytes;
  for (const Part& part : tensor.parts) {
    SHW_CHECK(read(part, part.box, bytes));
    Blocks cells{part.box.sizes, Extents(part.box.sizes.size(), 1)};
    for (std::size_t i = 0; cells.next(); ++i) {
      std::int64_t at = 0;
      for (std::size_t d = 0; d < strides.size(); ++d)
        at += (part.box.offsets[d] + cells.block.offsets[d]) * strides[d];
      std::memcpy(&values[static_cast<std::size_t>(at)], bytes.data() + i * sizeof(float),
                  sizeof(float));
    }
  }
  found->second = std::move(values);
  return &found->second;
}

Status PartReader::scale(const Scaling& scaling, const Part& part, const Box& box, Bytes& values,
                         std::uint8_t* out_of_range) {
  SHW_TRY(const std::vector<float>* all_factors, factors(scaling.factors));
  Extents strides = row_major_strides(all_.factors[scaling.factors]->shape);
  Blocks cells{box.sizes, Extents(box.sizes.size(), 1)};
  for (std::size_t i = 0; cells.next(); ++i) {
    std::int64_t at = 0;
    for (std::size_t e = 0; e < scaling.order.size(); ++e) {
      std::int64_t index = scaling.first[e];
      if (scaling.order[e] >= 0) {
        auto d = static_cast<std::size_t>(scaling.order[e]);
        index += box.offsets[d] - part.box.offsets[d] + cells.block.offsets[d];
      }
      at += index / scaling.block[e] * strides[e];
    }
    float value = 0;
    std::memcpy(&value, values.data() + i * sizeof value, sizeof value);
    const float product = scaled(value, (*all_factors)[static_cast<std::size_t>(at)]);
    if (out_of_range != nullptr && std::isfinite(value) && !std::isfinite(product))
      out_of_range[i] = 1;
    std::memcpy(values.data() + i * sizeof product, &product, sizeof product);
  }
  return {};
}

Status PartReader::read(const Part& part, const Box& box, Bytes& to, std::uint8_t* out_of_range) {
  std::int64_t count = volume(box.sizes).value_or(0);
  if (const auto* constant = std::get_if<FromConstant>(&part.from)) {
    repeat(*constant, count, size_of(part.saved), to);
    return {};
  }
  std::size_t element = size_of(part.saved);
  SHW_TRY(const Extents strides, read_raw(part, box, to));
  const Extents target = byte_strides(box.sizes, element);
  if (strides != target) {
    Bytes out(static_cast<std::size_t>(count) * element);
    for_each_canonical_pair(pair_of(box.sizes, strides, 0, target, 0), [&](const LayoutPair& pair) {
      copy_elements(to.data(), out.data(), pair, element);
    });
    to = std::move(out);
  }
  Dtype now = part.saved;
  for (std::size_t i = 0; i < part.casts.size(); ++i) {
    SHW_TRY(to, cast_elements(now, to, part.casts[i], out_of_range));
    now = part.casts[i];
    if (i == 0 && part.scaling) SHW_CHECK(scale(*part.scaling, part, box, to, out_of_range));
  }
  return {};
}

}  // namespace shw
