#include "core/hdf5_view/tile_copies.h"

#include "core/formats/items/item_cursor.h"
#include "core/formats/replicas.h"
#include "core/tiles/blocks.h"

namespace shw {
namespace {

constexpr std::int64_t kComparedBytes = 8 << 20;
constexpr const char* kUnknownWhichIsRight = ", and it is not known whose elements are right";

Result<bool> are_copies_equal(const Checkpoint& checkpoint, ChunkId one, ChunkId other) {
  ItemCursor reader(checkpoint);
  ExtentsView sizes = checkpoint.sizes(one);
  const std::int64_t element = size_of(checkpoint.dtype(checkpoint.tensor_of(one)));
  Blocks blocks{copy_of(sizes), block_sizes(sizes, kComparedBytes / element, {})};
  while (blocks.next()) {
    SHW_TRY(Bytes left, reader.read(one, blocks.block));
    SHW_TRY(Bytes right, reader.read(other, blocks.block));
    if (left != right) return false;
  }
  return true;
}

std::string file_of(const Checkpoint& checkpoint, ChunkId chunk) {
  auto item = checkpoint.item(chunk);
  return item ? checkpoint.file(item->file).path : std::string("nowhere");
}

}  // namespace

std::string differing_copies_reason(const Checkpoint& checkpoint,
                                    const std::vector<ChunkId>& chunks, const EqualBoxes& equal) {
  for (auto [one, other] : equal) {
    auto same = are_copies_equal(checkpoint, one, other);
    if (same && !*same)
      return "copies of one tile differ: " + file_of(checkpoint, one) + " and " +
             file_of(checkpoint, other) + " were to hold the same" + kUnknownWhichIsRight;
  }
  for (ChunkId chunk : chunks) {
    for (const Replica& replica : checkpoint.replicas(chunk)) {
      auto doubt = mismatch_of(checkpoint, replica, nullptr);
      if (doubt && !doubt->empty()) return *doubt + kUnknownWhichIsRight;
    }
  }
  return {};
}

std::variant<MappedTile, MappingFailure> map_any_copy(const Checkpoint& checkpoint, ChunkId chunk,
                                                      const EqualBoxes& equal, bool& is_another) {
  auto first = map_tile(checkpoint, chunk);
  const auto* obstacle = std::get_if<MappingFailure>(&first);
  if (obstacle == nullptr || obstacle->is_there) return first;
  is_another = true;
  for (auto [one, other] : equal) {
    if (one != chunk) continue;
    auto mapped = map_tile(checkpoint, other);
    if (std::holds_alternative<MappedTile>(mapped)) return mapped;
  }
  for (const Replica& replica : checkpoint.replicas(chunk)) {
    if (&checkpoint.codec(replica.storage) != &checkpoint.codec(chunk)) continue;
    auto mapped = map_copy(checkpoint, chunk, checkpoint.place(replica.storage));
    if (std::holds_alternative<MappedTile>(mapped)) return mapped;
  }
  is_another = false;
  return first;
}

}  // namespace shw
