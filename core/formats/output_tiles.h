// The tiles of a tensor that is written. Millions of them wait while a program is made and run:
// 32 bytes each of two dims, where a row of its own takes 112.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw {

// What is said of few tiles: of millions, none that has nothing of it pays for it.
struct OutputTileMore {
  // Of the item that is kept, where it is not the recorded one.
  std::optional<ItemPlace> place = {};
  std::vector<FileId> made_of = {};  // files of the source with elements that it is made of
};
struct OutputTile {
  Box box;
  std::uint32_t writer = 0;  // the rank that it is of
  // A chunk of the source whose item comes along as it is; nothing: the elements are made.
  std::optional<ChunkId> kept = {};
  std::shared_ptr<const OutputTileMore> more = {};
};

// A list of them, by value: `for (const OutputTile& tile : tiles)` as of a vector.
class OutputTiles {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = OutputTile;
    using difference_type = std::ptrdiff_t;
    using pointer = const OutputTile*;
    using reference = OutputTile;

    Iterator(const OutputTiles& tiles, std::size_t at) : tiles_(&tiles), at_(at) {}
    OutputTile operator*() const { return (*tiles_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const OutputTiles* tiles_;
    std::size_t at_;
  };

  OutputTiles() = default;
  OutputTiles(std::initializer_list<OutputTile> tiles) {
    for (const OutputTile& tile : tiles) push_back(tile);
  }

  std::size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }
  OutputTile operator[](std::size_t tile) const;
  // Its box alone.
  Box box(std::size_t tile) const;

  void reserve(std::size_t tiles) { rows_.reserve(tiles); }
  // As many offsets as sizes, as every box has.
  void push_back(const OutputTile& tile);
  // Without the room that was reserved for more.
  void shrink_to_fit();

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  struct Row {
    std::uint32_t offsets = 0, sizes = 0;  // in numbers_; before the sizes their number stands
    std::uint32_t writer = 0;
    std::uint32_t kept = kNone;
  };
  bool has_sizes(std::uint32_t at, const Extents& sizes) const;

  std::vector<Row> rows_;
  std::vector<std::int64_t> numbers_;  // sizes that are those of the tile before are there once
  std::vector<std::pair<std::uint32_t, std::shared_ptr<const OutputTileMore>>> more_;  // by tile
};

}  // namespace shw
