#include "core/compare/tile_cover.h"

#include <algorithm>
#include <utility>

#include "core/facts/storage/missing_data.h"

namespace shw {
namespace {

// Pairs of gaps that are compared; takes under a second.
constexpr std::size_t kMaxPairs = 4'000'000;

bool is_before(const Box& a, const Box& b) {
  return std::pair(a.offsets, a.sizes) < std::pair(b.offsets, b.sizes);
}

std::optional<Error> missing_data_error(const Checkpoint& checkpoint, TensorId tensor) {
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    std::string_view why = missing_data_reason(checkpoint, chunk);
    if (why.empty()) continue;
    auto item = checkpoint.item(chunk);
    std::string file =
        item && item->file != FileId::kNone ? checkpoint.file(item->file).path : std::string();
    return Error{ErrorKind::kDamaged, "the bytes of a chunk are missing: " + std::string(why),
                 Place{std::move(file), std::nullopt, std::string(checkpoint.fqn(tensor))}};
  }
  return std::nullopt;
}

std::optional<Error> tile_outside_error(const Checkpoint& checkpoint, TensorId tensor) {
  ExtentsView shape = checkpoint.shape(tensor);
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    ExtentsView offsets = checkpoint.offsets(chunk), sizes = checkpoint.sizes(chunk);
    if (is_inside(offsets, sizes, shape)) continue;
    return Error{ErrorKind::kDamaged,
                 "the tile at " + to_text(offsets) + " of sizes " + to_text(sizes) +
                     " is not inside the shape " + to_text(shape),
                 Place{.file = {}, .tensor = std::string(checkpoint.fqn(tensor))}};
  }
  return std::nullopt;
}

std::vector<Box> sorted_tiles(const Checkpoint& checkpoint, TensorId tensor) {
  std::vector<Box> tiles;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    Box box = box_of(checkpoint, chunk);
    if (!is_empty(box)) tiles.push_back(std::move(box));
  }
  std::sort(tiles.begin(), tiles.end(), is_before);
  return tiles;
}

}  // namespace

TileCover compute_tile_cover(const Checkpoint& checkpoint, TensorId tensor) {
  TileCover cover;
  cover.error = missing_data_error(checkpoint, tensor);
  if (size_of(checkpoint.dtype(tensor)) == 0 && !cover.error)
    cover.error = Error{ErrorKind::kUnsupported, "the tensor's dtype is not known",
                        Place{.file = {}, .tensor = std::string(checkpoint.fqn(tensor))}};
  TensorTiling judged = compute_tiling(checkpoint, tensor);
  if (judged.tiling == Tiling::kExact) return cover;
  cover.exact = false;
  if (auto outside = tile_outside_error(checkpoint, tensor)) cover.error = std::move(outside);
  // Impossible shapes have no number of elements.
  if (!volume(checkpoint.shape(tensor)) && !cover.error)
    cover.error = Error{ErrorKind::kDamaged,
                        "the shape " + to_text(checkpoint.shape(tensor)) + " is impossible",
                        Place{.file = {}, .tensor = std::string(checkpoint.fqn(tensor))}};
  if (judged.tiling == Tiling::kMalformed) return cover;
  cover.has_more_gaps = !judged.defects.complete;
  cover.missing = judged.defects.missing;
  cover.gaps = std::move(judged.defects.gaps);
  cover.overlaps = std::move(judged.defects.overlaps);
  std::sort(cover.gaps.begin(), cover.gaps.end(), is_before);
  return cover;
}

std::optional<std::int64_t> differing_gap_elements(const TileCover& a, const TileCover& b) {
  if (a.has_more_gaps || b.has_more_gaps) return std::nullopt;
  if (a.gaps == b.gaps) return 0;
  if (!a.gaps.empty() && b.gaps.size() > kMaxPairs / a.gaps.size()) return std::nullopt;
  std::int64_t shared = 0;
  for (const Box& one : a.gaps) {
    for (const Box& two : b.gaps) {
      if (auto common = intersect(one, two)) shared += volume(common->sizes).value_or(0);
    }
  }
  return a.missing - shared + (b.missing - shared);
}

bool have_equal_boxes(const Checkpoint& a, TensorId one, const Checkpoint& b, TensorId two) {
  auto left = a.chunks(one), right = b.chunks(two);
  bool in_order = left.size() == right.size();
  for (std::uint32_t i = 0; in_order && i < left.size(); ++i)
    in_order =
        same(a.offsets(left[i]), b.offsets(right[i])) && same(a.sizes(left[i]), b.sizes(right[i]));
  return in_order || sorted_tiles(a, one) == sorted_tiles(b, two);
}

}  // namespace shw
