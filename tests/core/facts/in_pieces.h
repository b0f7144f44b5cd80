// A tensor in memory that is passed in pieces: cut at random, in random order, like tiles of a
// file.
#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "core/facts/values/tensor_pieces.h"
#include "core/tensor/strided_copy.h"

namespace shw::test {

// Boxes that fill the shape, a few along every dimension.
inline std::vector<Box> cut_at_random(const Extents& shape, std::mt19937& dice) {
  std::vector<Box> boxes{whole(shape)};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<Box> parts;
    const std::int64_t step =
        1 + static_cast<std::int64_t>(dice()) % std::max<std::int64_t>(shape[d], 1);
    for (const Box& box : boxes) {
      for (std::int64_t at = 0; at < shape[d]; at += step) {
        Box part = box;
        part.offsets[d] = at;
        part.sizes[d] = std::min(step, shape[d] - at);
        parts.push_back(std::move(part));
      }
    }
    boxes = std::move(parts);
  }
  std::shuffle(boxes.begin(), boxes.end(), dice);
  return boxes;
}

inline PiecedTensor in_pieces(Dtype dtype, const Extents& shape, Bytes bytes, std::mt19937& dice) {
  auto boxes = std::make_shared<const std::vector<Box>>(cut_at_random(shape, dice));
  auto all = std::make_shared<const Bytes>(std::move(bytes));
  auto pass = [=](const Box& wanted, const PieceSink& take) {
    const Extents strides = row_major_strides(shape);
    for (const Box& box : *boxes) {
      auto part = intersect(box, wanted);
      if (!part || is_empty(*part)) continue;
      const std::size_t element = size_of(dtype);
      Bytes out(static_cast<std::size_t>(*volume(part->sizes)) * element);
      copy_strided({*all, strides, index_at(part->offsets, strides)},
                   {out, row_major_strides(part->sizes), 0}, part->sizes, element);
      take(*part, out);
    }
    return true;
  };
  return {dtype, shape, pass, {}};
}

}  // namespace shw::test
