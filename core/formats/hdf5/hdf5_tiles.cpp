// The tiles of a dataset, from the B-tree that HDF5 searches.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/base/checked.h"
#include "core/formats/hdf5/hdf5_cursor.h"
#include "core/formats/hdf5/hdf5_messages.h"
#include "core/formats/hdf5/hdf5_object.h"

namespace shw {
namespace {

constexpr int kMaxTileLevels = 32;

// Layout: size, mask of skipped filters, offsets, and a byte offset within the element: 0 for
// tiles, anything in the last key of a node, which is not a tile.
struct Hdf5TileKey {
  std::uint32_t length = 0, left_out = 0;
  Extents at;
};

Hdf5TileKey consume_key(Hdf5Cursor& cursor, std::size_t ndim) {
  Hdf5TileKey key;
  key.length = cursor.take<std::uint32_t>();
  key.left_out = cursor.take<std::uint32_t>();
  for (std::size_t d = 0; d <= ndim; ++d)
    key.at.push_back(static_cast<std::int64_t>(cursor.take<std::uint64_t>()));
  return key;
}

// HDF5 only requires keys on the grid of tiles.
bool is_on_grid(const Extents& at, const Hdf5Array& array) {
  for (std::size_t d = 0; d < at.size(); ++d) {
    const auto step = d < array.tile_shape.size() ? array.tile_shape[d]
                                                  : static_cast<std::int64_t>(size_of(array.dtype));
    if (static_cast<std::uint64_t>(at[d]) % static_cast<std::uint64_t>(step) != 0) return false;
  }
  return true;
}

bool is_before(const Extents& a, const Extents& b) {
  return std::lexicographical_compare(
      a.begin(), a.end(), b.begin(), b.end(), [](std::int64_t x, std::int64_t y) {
        return static_cast<std::uint64_t>(x) < static_cast<std::uint64_t>(y);
      });
}

}  // namespace

// Layout: dimensions + 1, address of the B-tree, then extents (4 bytes each).
Status Hdf5Objects::place_tiles(const Hdf5Message& message, Hdf5Array& array) {
  Hdf5Cursor cursor(message.body, 2);
  const std::size_t ndim = array.shape.size();
  const auto rank = cursor.take<std::uint8_t>();
  const auto tree = cursor.take<std::uint64_t>();
  for (std::size_t d = 0; d < ndim; ++d) array.tile_shape.push_back(cursor.take<std::uint32_t>());
  const auto element = cursor.take<std::uint32_t>();
  auto elements = volume(array.tile_shape);
  // HDF5 limits tiles to 4 GiB.
  if (!cursor.ok() || rank != ndim + 1 || element != size_of(array.dtype) || !elements ||
      *elements == 0 || *elements > (std::int64_t{1} << 32))
    return damaged("a dataset's chunks are invalid", message.offset);
  if (array.is_shuffled && array.shuffled_by != element) {
    array.unread = Hdf5Unsupported::kFiltered;
    array.unread_offset = message.offset;
    return {};
  }
  array.is_tiled = true;
  if (tree == kHdf5NoAddress) return {};
  Hdf5TileTraversal way;
  SHW_CHECK(add_tiles({tree}, way, array));
  for (const auto& [level, next] : way.next_of_level) {
    if (next != kHdf5NoAddress) return damaged("a chunk B-tree links to a missing node", tree);
  }
  return {};
}

// "TREE", type 1, level, count, two siblings, then alternating
// keys and children, and a final key. HDF5 searches each node
// binarily; tiles outside a node's keys are not found and read as
// unwritten.
Status Hdf5Objects::add_tiles(const Hdf5TileNode& node, Hdf5TileTraversal& way, Hdf5Array& array) {
  SHW_TRY(Bytes head, read_and_record(node.address, 24));
  const int level = std::to_integer<int>(head[5]);
  if (!has_hdf5_signature(head, "TREE") || head[4] != std::byte{1})
    return damaged("a chunk B-tree is missing", node.address);
  if (!way.seen.insert(node.address).second || level > kMaxTileLevels ||
      (node.above >= 0 && level >= node.above))
    return damaged("a chunk B-tree contains a cycle", node.address);
  const auto count = load_little<std::uint16_t>(head, 6);
  if (count > tiles_)
    return damaged(fmt::format("{} chunks are stored where only {} fit", count, tiles_),
                   node.address);
  // HDF5 follows siblings to determine a dataset's size, as h5py does when it visits all objects,
  // but not for reading.
  const auto right = load_little<std::uint64_t>(head, 16);
  auto [last, is_first] = way.next_of_level.try_emplace(level, right);
  const std::uint64_t named = is_first ? node.address : std::exchange(last->second, right);
  if (named != node.address && named != kHdf5NoAddress)
    return damaged("a chunk B-tree node does not match the link of the previous node",
                   node.address);
  const std::size_t ndim = array.shape.size(), key_size = 8 * (ndim + 2);
  SHW_TRY(Bytes body, read_and_record(node.address + 24, count * (key_size + 8) + key_size));
  Hdf5Cursor cursor(body);
  Hdf5TileKey key = consume_key(cursor, ndim);
  for (std::size_t i = 0; i < count; ++i) {
    const auto child = cursor.take<std::uint64_t>();
    Hdf5TileKey next = consume_key(cursor, ndim);
    if (!is_on_grid(key.at, array) || !is_on_grid(next.at, array) || !is_before(key.at, next.at))
      return damaged("the keys of a chunk B-tree do not match its chunks", node.address);
    if (level > 0) {
      Hdf5TileNode below{child, level, std::pair(key.at, next.at)};
      // The intersection of both: tiles outside a parent's keys cannot be found.
      if (node.between) {
        below.between->first = std::max(key.at, node.between->first, is_before);
        below.between->second = std::min(next.at, node.between->second, is_before);
      }
      SHW_CHECK(add_tiles(below, way, array));
    } else {
      const bool is_found = !node.between || (!is_before(key.at, node.between->first) &&
                                              is_before(key.at, node.between->second));
      if (key.at.back() != 0 || !is_found)
        return damaged("a chunk does not match its keys, so HDF5 does not find it", node.address);
      key.at.pop_back();
      for (std::size_t d = 0; d < ndim; ++d) {
        if (key.at[d] < 0 || key.at[d] >= array.shape[d])
          return damaged("a chunk is outside of its dataset", node.address);
      }
      // Without filters a tile has exactly its elements' size; otherwise it was deflated.
      const auto bytes =
          static_cast<std::uint64_t>(volume(array.tile_shape).value_or(0)) * size_of(array.dtype);
      if (!array.is_deflated && key.length != bytes)
        return damaged(fmt::format("a chunk is recorded with {} bytes, but its elements need {}",
                                   key.length, bytes),
                       node.address);
      if (key.left_out != 0) array.unread = Hdf5Unsupported::kFiltered;
      array.tiles.push_back({std::move(key.at), child, key.length});
    }
    key = std::move(next);
  }
  return {};
}

}  // namespace shw
