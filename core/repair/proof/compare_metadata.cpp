#include <algorithm>
#include <compare>
#include <unordered_map>

#include "core/repair/lower/lower.h"
#include "core/repair/lower/outputs.h"
#include "core/repair/run/carry_out.h"

namespace shw {
namespace {

// Boxes with the place of their items, in one order, so that two lists can be compared.
struct Tile {
  Extents offsets, sizes;
  std::string item;  // "file:offset+length"; empty where only its box is given
  auto operator<=>(const Tile&) const = default;
};

std::string place_text(const Checkpoint& checkpoint, ChunkId chunk) {
  auto item = checkpoint.item(chunk);
  if (!item) return "none";
  return checkpoint.file(item->file).path + ":" + std::to_string(item->offset) + "+" +
         std::to_string(item->length);
}

std::vector<Tile> tiles_of(const Checkpoint& checkpoint, TensorId tensor, bool with_items) {
  std::vector<Tile> tiles;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    tiles.push_back({copy_of(checkpoint.offsets(chunk)), copy_of(checkpoint.sizes(chunk)),
                     with_items ? place_text(checkpoint, chunk) : ""});
  }
  std::sort(tiles.begin(), tiles.end());
  return tiles;
}

std::vector<Tile> tiles_of(const PlannedTensor& planned) {
  std::vector<Tile> tiles;
  for (std::size_t i = 0; i < planned.chunks.size(); ++i) {
    Box box = planned.chunks.box(i);
    tiles.push_back({std::move(box.offsets), std::move(box.sizes), ""});
  }
  std::sort(tiles.begin(), tiles.end());
  return tiles;
}

}  // namespace

Status compare_metadata(const Checkpoint& checkpoint, const Plan& plan, const Checkpoint& result) {
  auto differs = [](std::string_view fqn, const std::string& what) {
    return fail(ErrorKind::kIo, "what was written does not say what was planned: " + what,
                Place{.file = kMetadataFile, .tensor = std::string(fqn)});
  };
  if (result.tensor_count() != checkpoint.tensor_count() ||
      result.objects().size() != checkpoint.objects().size()) {
    return differs("", "another number of entries");
  }
  if (other_attributes(result) != other_attributes(checkpoint))
    return differs("", "other attributes");
  bool same_places = checkpoint.format().rewrite == Rewrite::kIndex;
  auto planned = planned_by_id(plan);
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    auto found = planned.find(t);
    const PlannedTensor* change = found == planned.end() ? nullptr : &plan.tensors[found->second];
    std::string_view fqn =
        change != nullptr ? fqn_after(checkpoint, *change) : checkpoint.fqn(TensorId{t});
    auto made = result.find(fqn);
    if (!made || result.dtype(*made) != checkpoint.dtype(TensorId{t}))
      return differs(fqn, "it is missing, or of another dtype");
    if (!same(result.shape(*made),
              change != nullptr ? change->shape : checkpoint.shape(TensorId{t})))
      return differs(fqn, "another shape");
    bool as_planned = change != nullptr ? tiles_of(result, *made, false) == tiles_of(*change)
                                        : tiles_of(result, *made, same_places) ==
                                              tiles_of(checkpoint, TensorId{t}, same_places);
    if (!as_planned) return differs(fqn, "other tiles");
  }
  return {};
}

}  // namespace shw
