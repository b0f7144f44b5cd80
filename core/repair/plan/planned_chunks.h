// The new chunks of a planned tensor. Millions of them live from the plan to the proof: of two dims
// 40 bytes each where an old item stays and 20 to 90 more a piece, where a row of its own takes 144
// and 168 more a piece.
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

// A part of a new chunk: a box of an old chunk.
struct Piece {
  ChunkId chunk{};
  Box source;  // chunk-local
  Extents at;  // in the new chunk, chunk-local
  // Dim d of the new chunk is dim permutation[d] of the old one; empty: in the same order.
  Extents permutation = {};
};
Extents sizes_in_new(const Piece& piece);  // the source's, in the new chunk's order of dims

struct PlannedChunk {
  Box box;                      // in the new tensor
  std::optional<ChunkId> item;  // the old item as it is: a relabel, no byte is read
  std::vector<Piece>
      pieces;  // otherwise: what the new item is put together from; the rest is filled
  std::vector<ExternalPiece> external;  // and from side files; `at` is chunk-local here
  std::uint32_t writer = 0;             // rank in the new file's name
};

// A list of them, by value: `for (const PlannedChunk& chunk : chunks)` as of a vector. What comes
// out is const, since nothing that is done to it would reach what is held.
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
  // Of it alone, with nothing put together.
  Box box(std::size_t chunk) const;
  std::optional<ChunkId> item(std::size_t chunk) const;

  void reserve(std::size_t chunks) { rows_.reserve(chunks); }
  void push_back(const PlannedChunk& chunk);
  void clear() { *this = {}; }
  // Without the room that was reserved for more.
  void shrink_to_fit();

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  // Of lists in numbers_, where they begin: how many numbers, then those. A plan that somebody
  // edited may have boxes whose offsets and sizes are not as many.
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
  List keep(const Extents& numbers, std::initializer_list<List> known);
  void keep_piece(const Piece& piece, const Row& row);

  std::vector<Row> rows_;
  std::vector<std::int64_t> numbers_;  // lists that a neighbour has too are there once
  std::vector<PieceRow> pieces_;
  std::vector<std::uint32_t> piece_ends_;  // by row, in pieces_; empty where nothing has any
  std::vector<std::pair<std::uint32_t, std::vector<ExternalPiece>>> sides_;  // by row
};

}  // namespace shw
