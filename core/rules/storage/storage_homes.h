// Searches the real bytes of a chunk whose record names another item's bytes: an unclaimed range
// that holds an item of its shape and dtype.
#pragma once

#include <optional>
#include <vector>

#include "core/facts/facts.h"
#include "core/facts/storage/shared_ranges.h"

namespace shw {

// One claim of a shared range is right; the item of the other is at `home`.
struct Home {
  ChunkId moves{};
  Claim stays;
  ItemPlace home;
};

// Unclaimed ranges and unreferenced data files that could hold an item.
std::vector<ItemPlace> unclaimed_item_places(const Facts& facts);

class ItemRelocator {
 public:
  explicit ItemRelocator(const Facts& facts, const std::vector<SharedRange>& shared);
  // All assignments that the items allow; a single one is conclusive. Needs headers.
  std::vector<Home> possible_item_places(const SharedRange& range) const;

 private:
  bool fits(const Result<ItemHeader>& header, ChunkId chunk) const;
  bool keeps_order(const Home& home) const;
  bool is_in_order(FileId file, std::int64_t offset, ChunkId chunk) const;
  std::int64_t votes(ChunkId chunk, FileId file) const;

  const Facts& facts_;
  std::vector<ItemPlace> orphans_;
  std::vector<bool> contested_;                    // by chunk
  std::vector<std::vector<std::uint32_t>> files_;  // unambiguous chunks, by file, sorted by offset
  bool order_is_constraint_ = false;
};

}  // namespace shw
