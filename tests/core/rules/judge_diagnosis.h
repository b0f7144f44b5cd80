// Checks by simple loops, element by element, that a diagnosis is true.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "core/fixtures.h"
#include "core/formats/items/items.h"
#include "core/model/diagnosis.h"
#include "core/tensor/cast.h"

namespace shw::test {

// Calls `visit` with every coordinate of a box of that size.
template <class Visit>
void each_element(const Extents& sizes, Visit visit) {
  if (volume(sizes).value_or(0) == 0) return;
  Extents at(sizes.size(), 0);
  while (true) {
    visit(at);
    std::size_t d = sizes.size();
    while (d > 0 && ++at[d - 1] == sizes[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

inline std::size_t flat_index(const Extents& at, const Extents& shape) {
  std::size_t index = 0;
  for (std::size_t d = 0; d < shape.size(); ++d)
    index = index * static_cast<std::size_t>(shape[d]) + static_cast<std::size_t>(at[d]);
  return index;
}

inline Extents sum_of(const Extents& a, const Extents& b) {
  Extents sum = a;
  for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += b[d];
  return sum;
}

// Compares elements of `source` in `from` (a tensor of `from_shape`) with the truth at `at`. Marks
// filled elements, and counts those that are filled twice or differ.
struct Judge {
  const TruthTensor& truth;
  std::vector<bool> filled = {};
  std::int64_t wrong = 0, twice = 0;

  void put(BytesView from, const Extents& from_shape, const Box& source, const Extents& at) {
    filled.resize(static_cast<std::size_t>(volume(truth.shape).value()));
    std::size_t size = size_of(truth.dtype);
    each_element(source.sizes, [&](const Extents& step) {
      std::size_t a = flat_index(sum_of(source.offsets, step), from_shape);
      std::size_t b = flat_index(sum_of(at, step), truth.shape);
      if (filled[b]) ++twice;
      filled[b] = true;
      if (!std::equal(from.begin() + static_cast<std::ptrdiff_t>(a * size),
                      from.begin() + static_cast<std::ptrdiff_t>((a + 1) * size),
                      truth.bytes.begin() + static_cast<std::ptrdiff_t>(b * size)))
        ++wrong;
    });
  }
  std::int64_t count() const { return std::count(filled.begin(), filled.end(), true); }
};

// Elements that the diagnosis brings to their true place; fails the test where one is wrong.
inline std::int64_t judge(const Checkpoint& checkpoint, const Diagnosis& diagnosis,
                          const TruthTensor& truth) {
  Judge judge{truth};
  // As the item says, whatever the metadata says of its size.
  auto chunk_bytes = [&](ChunkId chunk) {
    auto header = read_item_header(checkpoint, chunk);
    REQUIRE_MESSAGE(header.has_value(), header.error().message);
    auto bytes = read_chunk(checkpoint, chunk);
    if (bytes) return *bytes;
    REQUIRE(header->strides == row_major_strides(header->sizes));
    auto source = checkpoint.directory()->open(checkpoint.file(checkpoint.item(chunk)->file).path);
    REQUIRE(source.has_value());
    auto raw = read_bytes(**source, header->payload_offset, header->payload_length);
    REQUIRE(raw.has_value());
    return *raw;
  };
  if (const auto* part = std::get_if<PartlyLost>(&diagnosis)) {
    CHECK(part->expected == truth.shape);
    for (const RetainedChunk& retained_chunk : part->retained_chunks) {
      auto header = read_item_header(checkpoint, retained_chunk.chunk);
      REQUIRE(header.has_value());
      judge.put(chunk_bytes(retained_chunk.chunk), header->sizes, retained_chunk.source,
                retained_chunk.at);
    }
  } else if (const auto* moved = std::get_if<WrongBoxes>(&diagnosis)) {
    CHECK(moved->expected == truth.shape);
    auto chunks = checkpoint.chunks(moved->tensor);
    REQUIRE(moved->boxes.size() == chunks.size());
    for (std::uint32_t i = 0; i < chunks.size(); ++i) {
      const Box& box = moved->boxes[i];
      judge.put(chunk_bytes(chunks[i]), box.sizes, whole(box.sizes), box.offsets);
    }
  } else if (const auto* blocks = std::get_if<BlocksPermuted>(&diagnosis)) {
    auto values = read_tensor(checkpoint, blocks->tensor);
    REQUIRE(values.has_value());
    for (std::size_t i = 0; i < blocks->order.size(); ++i) {
      Box source = whole(values->shape);
      source.offsets[blocks->dim] = blocks->order[i] * blocks->block;
      source.sizes[blocks->dim] = blocks->block;
      Extents at(values->shape.size(), 0);
      at[blocks->dim] = static_cast<std::int64_t>(i) * blocks->block;
      judge.put(values->bytes, values->shape, source, at);
    }
  } else if (const auto* restored = std::get_if<RestoredFromRankFiles>(&diagnosis)) {
    CHECK(restored->expected == truth.shape);
    for (const ExternalPiece& piece : restored->pieces) {
      auto source = checkpoint.directory()->open(piece.file);
      REQUIRE(source.has_value());
      auto raw = read_bytes(**source, piece.offset, piece.length);
      REQUIRE(raw.has_value());
      auto cast = cast_elements(piece.dtype, *raw, truth.dtype);
      REQUIRE(cast.has_value());
      judge.put(*cast, piece.sizes, whole(piece.sizes), piece.at);
    }
  } else {
    FAIL("another kind of diagnosis");
  }
  CHECK(judge.wrong == 0);
  CHECK(judge.twice == 0);
  return judge.count();
}

}  // namespace shw::test
