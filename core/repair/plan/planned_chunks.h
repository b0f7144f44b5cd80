// The new chunks of a planned tensor, packed, because millions live from planning to proof. With
// two dims, a chunk that keeps its item takes 40 bytes, plus 20 to 90 per piece. An unpacked
// PlannedChunk takes 144, plus 168 per piece.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/model/diagnosis.h"
#include "core/tensor/shape.h"

namespace shw {

// A box of an old chunk that becomes a part of a new chunk.
struct Piece {
  ChunkId chunk{};
  Box source;  // chunk-local
  Extents at;  // in the new chunk, chunk-local
  // Dim d of the new chunk is dim permutation[d] of the old one; empty: in the same order.
  Extents permutation = {};
};
Extents sizes_in_new(const Piece& piece);  // sizes of the source in the new chunk's order of dims

struct PlannedChunk {
  Box box;                      // in the new tensor
  std::optional<ChunkId> item;  // the old item, unchanged: a relabel that reads no bytes
  std::vector<Piece> pieces;    // pieces of old items that form the new item; the rest is filled
  std::vector<ExternalPiece> external;  // pieces from other files; `at` is chunk-local
  std::uint32_t writer = 0;             // rank in the name of the new file
};

// A list of chunks that are returned by value: `for (const PlannedChunk& chunk : chunks)` works as
// with a vector. Elements are const because changing the copy would not change the list.
class PlannedChunks {
 public:
  using value_type = PlannedChunk;

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = PlannedChunk;
    using difference_type = std::ptrdiff_t;
    using pointer = const PlannedChunk*;
    using reference = const PlannedChunk;

    Iterator(const PlannedChunks& chunks, std::size_t at) : chunks_(&chunks), at_(at) {}
    const PlannedChunk operator*() const { return (*chunks_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const PlannedChunks* chunks_;
    std::size_t at_;
  };

  PlannedChunks() = default;
  PlannedChunks(std::initializer_list<PlannedChunk> chunks) {
    for (const PlannedChunk& chunk : chunks) push_back(chunk);
  }

  std::size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }
  const PlannedChunk operator[](std::size_t chunk) const;
  const PlannedChunk front() const { return (*this)[0]; }
  // Single properties of a chunk, without building the whole PlannedChunk.
  Box box(std::size_t chunk) const;
  std::optional<ChunkId> item(std::size_t chunk) const;

  void reserve(std::size_t chunks) { rows_.reserve(chunks); }
  void push_back(const PlannedChunk& chunk);
  void clear() { *this = {}; }
  // Releases capacity that was reserved but not used.
  void shrink_to_fit();

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  // Position of a list in numbers_: its length, then its numbers. In an edited plan the offsets and
  // sizes of a box may differ in length.
  using List = std::uint32_t;
  struct Row {
    List offsets = 0, sizes = 0;
    std::uint32_t writer = 0;
    std::uint32_t item = kNone;
  };
  struct PieceRow {
    std::uint32_t chunk = 0;
    List from = 0, sizes = 0, at = 0, order = 0;
  };
  Extents list(List at) const;
  List intern_extents(const Extents& numbers, std::initializer_list<List> known);
  void append_piece_row(const Piece& piece, const Row& row);

  std::vector<Row> rows_;
  std::vector<std::int64_t> numbers_;  // equal lists of neighbouring rows are stored once
  std::vector<PieceRow> pieces_;
  std::vector<std::uint32_t> piece_ends_;  // by row: end in pieces_; empty if no row has pieces
  std::vector<std::pair<std::uint32_t, std::vector<ExternalPiece>>> sides_;  // by row
};

}  // namespace shw
