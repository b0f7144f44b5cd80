// A deflated tile of a dataset, shuffled or not before that, inflated while it is read from front
// to back: of a tile of any length a few buffers are held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/formats/common/byte_stream.h"

namespace shw {

struct DeflatedTile {
  std::shared_ptr<const ByteSource> source;
  std::uint64_t offset = 0, length = 0;  // of its bytes there
  std::uint64_t needed = 0;              // bytes of its front that are read
  // Of shuffled elements: first the first bytes of all, then the second ones, ...
  std::size_t shuffled_by = 1;
  // Bytes of the whole tile; nothing where only its stream tells: it is then inflated once more.
  // Where elements are not shuffled nobody asks.
  std::optional<std::uint64_t> whole = {};
  std::function<bool(std::uint64_t)> may_have = {};  // so many bytes: of what the stream tells
};

// Its first `needed` bytes. A shuffled one is inflated at `shuffled_by` places at once, each from
// the front: one and a half passes for two bytes, two and a half for four. kDamaged where the
// stream does not come to an end, or to another length than the tile has.
Result<std::unique_ptr<ByteStream>> tile_stream(const DeflatedTile& tile);

}  // namespace shw
