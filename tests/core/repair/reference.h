// Computes by simple loops the elements of a planned tensor, with every chunk's payload as a list
// of numbers.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <vector>

#include "core/model/builder.h"
#include "core/repair/plan/plan.h"

namespace shw {

using Values = std::vector<std::int64_t>;
inline constexpr std::int64_t kNoElement = -1;

inline std::size_t flat(const Extents& at, const Extents& shape) {
  std::size_t index = 0;
  for (std::size_t d = 0; d < shape.size(); ++d)
    index = index * static_cast<std::size_t>(shape[d]) + static_cast<std::size_t>(at[d]);
  return index;
}

// Calls `visit` with every coordinate of a box of that size.
template <class Visit>
void each(const Extents& sizes, Visit visit) {
  if (volume(sizes) == 0) return;
  Extents at(sizes.size(), 0);
  while (true) {
    visit(at);
    std::size_t d = sizes.size();
    while (d-- > 0) {
      if (++at[d] < sizes[d]) break;
      at[d] = 0;
      if (d == 0) return;
    }
    if (sizes.empty()) return;
  }
}

inline Extents plus(const Extents& a, const Extents& b) {
  Extents sum = a;
  for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += b[d];
  return sum;
}

inline Values cut_out(const Values& tensor, const Extents& shape, const Box& box) {
  Values values;
  each(box.sizes,
       [&](const Extents& at) { values.push_back(tensor[flat(plus(box.offsets, at), shape)]); });
  return values;
}

inline Values counting(const Extents& shape) {
  Values values(static_cast<std::size_t>(*volume(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i);
  return values;
}

// Payloads by chunk id. Unset elements are kNoElement.
inline Values run_command(const Checkpoint& checkpoint, const PlannedTensor& planned,
                          const std::map<std::uint32_t, Values>& payloads) {
  Values made(static_cast<std::size_t>(*volume(planned.shape)), kNoElement);
  auto put = [&](const Extents& at, std::int64_t value) {
    std::int64_t& place = made[flat(at, planned.shape)];
    CHECK(place == kNoElement);
    place = value;
  };
  for (const PlannedChunk& chunk : planned.chunks) {
    if (chunk.item) {
      const Values& payload = payloads.at(static_cast<std::uint32_t>(*chunk.item));
      each(chunk.box.sizes, [&](const Extents& at) {
        put(plus(chunk.box.offsets, at), payload[flat(at, chunk.box.sizes)]);
      });
    }
    for (const Piece& piece : chunk.pieces) {
      const Values& payload = payloads.at(static_cast<std::uint32_t>(piece.chunk));
      Extents sizes = copy_of(checkpoint.sizes(piece.chunk));
      each(piece.source.sizes, [&](const Extents& at) {
        Extents there = at;  // dim d of the new chunk is dim permutation[d] of the old one
        for (std::size_t d = 0; d < piece.permutation.size(); ++d)
          there[d] = at[static_cast<std::size_t>(piece.permutation[d])];
        put(plus(plus(chunk.box.offsets, piece.at), there),
            payload[flat(plus(piece.source.offsets, at), sizes)]);
      });
    }
  }
  return made;
}

}  // namespace shw
