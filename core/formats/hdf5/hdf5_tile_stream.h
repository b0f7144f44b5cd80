// A deflated tile, possibly shuffled, that is inflated while it is read sequentially, with a few
// buffers for tiles of any size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/formats/zip/byte_stream.h"

namespace shw {

struct DeflatedTile {
  std::shared_ptr<const ByteSource> source;
  std::uint64_t offset = 0, length = 0;  // of the compressed bytes
  std::uint64_t needed = 0;              // number of leading bytes that are read
  // Element size for shuffling: first bytes of all elements, then second ones, ...
  std::size_t shuffled_by = 1;
  // Bytes of the whole tile; used only for shuffled tiles. Empty if the size is unknown: the tile
  // is then inflated once more to find it.
  std::optional<std::uint64_t> whole = {};
  std::function<bool(std::uint64_t)> may_have = {};  // true if a stream of this length is valid
};

// The first `needed` bytes. A shuffled tile is inflated by `shuffled_by` streams at once: one and a
// half passes for two bytes, two and a half for four. kDamaged if the stream is truncated or has
// another length than the tile.
Result<std::unique_ptr<ByteStream>> tile_stream(const DeflatedTile& tile);

}  // namespace shw
