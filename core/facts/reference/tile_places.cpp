#include "core/facts/reference/tile_places.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/checked.h"
#include "core/base/parallel.h"
#include "core/facts/reference/likeness.h"
#include "core/facts/reference/match.h"
#include "core/facts/reference/reference_bytes.h"
#include "core/facts/reference/tile_content.h"
#include "core/facts/reference/tile_jigsaw.h"
#include "core/facts/values/value_reader.h"

namespace shw {
namespace {

// Searching the first gap costs the square of the number of tiles, per placed tile.
constexpr std::size_t kMaxInJigsaw = 256;
constexpr std::size_t kMaxLikened = 1024;  // 8 KiB of numbers per tile on each side
constexpr std::int64_t kSmallElements = 4096;
// Minimum total bits of distinct values before an order cannot be chance: two 32-bit floats, or
// eight small integers.
constexpr std::size_t kMinDistinctBits = 64;

struct Tile {
  ChunkId chunk{};
  std::size_t index = 0;  // index in the tensor
  Box box;                // recorded place with the item's size
  bool inside = false;    // inside the reference's shape
  bool in_place = false;
  std::optional<std::string> start;
  std::optional<BoxContent> content;
};

using Contents = std::pair<Extents, std::string>;  // sizes and hash

class TilePlaceSolver {
 public:
  TilePlaceSolver(const CheckInput& input, TensorId tensor, TensorId other, Dtype dtype)
      : input_(input),
        tensor_(tensor),
        shape_(copy_of(input.reference->shape(other))),
        dtype_(dtype),
        here_(input.checkpoint, tensor, dtype, input.progress, decode_budget_per_side(input)),
        there_(*input.reference, other, dtype, input.progress, decode_budget_per_side(input)) {}

  TilePlaces solve(bool every_byte) {
    out_.rounded = input_.checkpoint.dtype(tensor_) != dtype_ || has_other_dtype_in_reference();
    if (!collect_tiles() || !compare_tile_beginnings()) return std::move(out_);
    bool all_start_right =
        std::all_of(tiles_.begin(), tiles_.end(), [](const Tile& tile) { return tile.in_place; });
    out_.sampled = !every_byte && all_start_right;
    if (out_.sampled) return finish_with_answer(PlacesAnswer::kInPlace);
    bool worth_reading = all_start_right || is_small() || may_contain_moved_tiles();
    if (!worth_reading) return finish_with_answer(PlacesAnswer::kForeignContent);
    if (!compare_contents()) return std::move(out_);
    if (moved_.empty()) return finish_with_answer(PlacesAnswer::kInPlace);
    out_.telling = are_distinctive();
    // Tiles that are in place may be needed elsewhere if contents repeat.
    if (match_displaced_tiles_exactly() || pack_tiles_of_mixed_sizes(/*all=*/false) ||
        pack_tiles_of_mixed_sizes(/*all=*/true))
      return finish_with_answer(PlacesAnswer::kExchanged);
    find_unique_places();
    return finish_with_answer(out_.moves.empty() ? PlacesAnswer::kForeignContent
                                                 : PlacesAnswer::kPartly);
  }

 private:
  bool has_other_dtype_in_reference() const {
    return input_.reference->dtype(*input_.counterparts[index_of(tensor_)]) != dtype_;
  }

  // Small tensors are read completely at once.
  bool is_small() const { return volume(shape_).value_or(kSmallElements + 1) <= kSmallElements; }

  TilePlaces finish_with_answer(PlacesAnswer what) {
    out_.answer = what;
    if (what == PlacesAnswer::kPartly || what == PlacesAnswer::kForeignContent)
      classify_distinctive_tiles();
    if (what == PlacesAnswer::kForeignContent) find_by_correlation();
    return std::move(out_);
  }

  void classify_distinctive_tiles() {
    for (const Tile& tile : tiles_) {
      std::set<std::uint64_t> values = here_.values_at_start(tile.chunk, tile.box.sizes);
      if (values.size() * bits_per_value() < kMinDistinctBits) continue;
      if (tile.in_place) {
        out_.right.push_back(tile.index);
        continue;
      }
      auto wanted = tile.inside ? there_.start_of(tile.box) : std::nullopt;
      out_.strange.push_back({tile.index, *tile.start, wanted.value_or("")});
    }
  }

  std::optional<std::vector<float>> floats_of(std::optional<Bytes> bytes) const {
    return bytes ? std::optional(to_floats(dtype_, *bytes)) : std::nullopt;
  }

  bool correlates_in_all_parts(const Tile& tile, const Box& place) {
    return correlates_in_parts(
        tile.box.sizes,
        [&](const Box& inside) { return floats_of(here_.part(tile.chunk, inside)); },
        [&](Box inside) {
          for (std::size_t d = 0; d < inside.offsets.size(); ++d)
            inside.offsets[d] += place.offsets[d];
          return floats_of(there_.elements(inside));
        });
  }

  // After further training: compares the leading 4 KiB by correlation, then samples of the rest.
  void find_by_correlation() {
    if (!has_values(dtype_) || tiles_.size() < 2 || tiles_.size() > kMaxLikened) return;
    std::map<Extents, std::size_t> kind_of;
    std::vector<std::size_t> kinds;
    std::vector<std::vector<float>> here, there;
    for (const Tile& tile : tiles_) {
      auto own = floats_of(here_.start(tile.chunk, tile.box.sizes));
      auto wanted = tile.inside ? floats_of(there_.start(tile.box)) : std::nullopt;
      if (!own || !wanted) return;
      here.push_back(std::move(*own));
      there.push_back(std::move(*wanted));
      kinds.push_back(kind_of.try_emplace(tile.box.sizes, kind_of.size()).first->second);
    }
    auto order = match_by_correlation(std::move(here), std::move(there), kinds);
    if (!order) return;
    std::map<std::size_t, Box> places;
    for (std::size_t i = 0; i < tiles_.size(); ++i) {
      const Box& place = tiles_[order->place_of[i]].box;
      if (!correlates_in_all_parts(tiles_[i], place)) return;
      places[tiles_[i].index] = place;
    }
    if (accept_exact_tiling(places)) out_.likeness = order->margin;
  }

  // Collects tiles with their items' sizes; false if unreadable or if the total differs from the
  // reference.
  bool collect_tiles() {
    const Checkpoint& c = input_.checkpoint;
    auto chunks = c.chunks(tensor_);
    std::int64_t elements = 0;
    for (std::uint32_t i = 0; i < chunks.size(); ++i) {
      ChunkId chunk = chunks[i];
      const auto& header = input_.headers[index_of(chunk)];
      if (!header || header->dtype != c.dtype(tensor_)) return false;
      std::int64_t own = volume(header->sizes).value_or(0);
      auto sum = checked_add(elements, own);
      if (!sum || header->sizes.size() != shape_.size()) return false;
      elements = *sum;
      if (own == 0) continue;
      Tile tile;
      tile.chunk = chunk;
      tile.index = i;
      tile.box = {copy_of(c.offsets(chunk)), header->sizes};
      tile.inside = is_inside(tile.box.offsets, tile.box.sizes, shape_);
      tiles_.push_back(std::move(tile));
    }
    out_.tiles = static_cast<std::int64_t>(tiles_.size());
    return elements == volume(shape_) && elements > 0;
  }

  bool compare_tile_beginnings() {
    for (Tile& tile : tiles_) {
      tile.start = here_.start_of(tile.chunk, tile.box.sizes);
      if (!tile.start) return false;
      tile.in_place = tile.inside && there_.start_of(tile.box) == tile.start;
    }
    return true;
  }

  // True if a tile begins like another place of the reference: that of another tile or, for tiles
  // of different sizes, the first gap. If no begin matches, training has continued, and nothing
  // more is read.
  bool may_contain_moved_tiles() {
    std::set<Contents> starts;
    std::vector<Box> right;
    for (const Tile& tile : tiles_) {
      if (auto start = tile.inside ? there_.start_of(tile.box) : std::nullopt)
        starts.emplace(tile.box.sizes, *start);
      if (tile.in_place) right.push_back(tile.box);
    }
    auto gap = tiles_.size() - right.size() <= kMaxInJigsaw ? first_uncovered_element(shape_, right)
                                                            : std::nullopt;
    return std::any_of(tiles_.begin(), tiles_.end(), [&](const Tile& tile) {
      if (tile.in_place) return false;
      if (starts.contains({tile.box.sizes, *tile.start})) return true;
      return gap && is_inside(*gap, tile.box.sizes, shape_) &&
             there_.start_of({*gap, tile.box.sizes}) == tile.start;
    });
  }

  bool compare_contents() {
    for (Tile& tile : tiles_) {
      tile.content = here_.content_of(tile.chunk, tile.box.sizes);
      if (!tile.content) return false;
      if (tile.in_place) tile.in_place = has_content_of(tile, tile.box);
      if (!tile.in_place) moved_.push_back(&tile);
    }
    return true;
  }

  bool has_content_of(const Tile& tile, const Box& box) {
    if (there_.start_of(box) != tile.start) return false;
    auto content = there_.content_of(box);
    return content && content->hash == tile.content->hash;
  }

  bool are_distinctive() const {
    std::set<std::uint64_t> values;
    for (const Tile* tile : moved_)
      values.insert(tile->content->values.begin(), tile->content->values.end());
    return values.size() * bits_per_value() >= kMinDistinctBits;
  }
  std::size_t bits_per_value() const { return has_values(dtype_) ? 8 * size_of(dtype_) : 8; }

  // Exchanges displaced tiles of equal size.
  bool match_displaced_tiles_exactly() {
    PlacesByContent<Contents, Box> wanted;
    for (const Tile* tile : moved_) {
      auto content = tile->inside ? there_.content_of(tile->box) : std::nullopt;
      if (!content) return false;
      wanted.add({tile->box.sizes, content->hash}, tile->box);
    }
    std::map<std::size_t, Box> places;
    for (const Tile* tile : moved_) {
      auto place = wanted.take({tile->box.sizes, tile->content->hash});
      if (!place) return false;
      places[tile->index] = std::move(*place);
    }
    return accept_exact_tiling(places);
  }

  // Tiles of different sizes do not fit in each other's places.
  bool pack_tiles_of_mixed_sizes(bool all) {
    std::map<Contents, std::size_t> kind_of;
    std::vector<TileKind> kinds;
    std::vector<const Tile*> first;
    std::vector<Box> fixed;
    for (const Tile& tile : tiles_) {
      if (tile.in_place && !all) {
        fixed.push_back(tile.box);
        continue;
      }
      auto [at, added] = kind_of.try_emplace({tile.box.sizes, tile.content->hash}, kinds.size());
      if (added) {
        kinds.push_back({tile.box.sizes, {}});
        first.push_back(&tile);
      }
      kinds[at->second].tiles.push_back(tile.index);
    }
    if (tiles_.size() - fixed.size() > kMaxInJigsaw) return false;
    auto found = put_together(
        shape_, fixed, std::move(kinds),
        [&](std::size_t kind, const Box& box) { return has_content_of(*first[kind], box); });
    return found && accept_exact_tiling({found->begin(), found->end()});
  }

  // Accepts the assignment if all boxes fill the shape exactly.
  bool accept_exact_tiling(const std::map<std::size_t, Box>& places) {
    std::vector<Box> boxes = chunk_boxes(input_.checkpoint, tensor_);  // empty ones keep theirs
    FlatBoxes flat;
    flat.ndim = shape_.size();
    std::vector<TileMove> moves;
    for (const Tile& tile : tiles_) {
      auto found = places.find(tile.index);
      const Box& box = found == places.end() ? tile.box : found->second;
      if (box != tile.box) moves.push_back({tile.box, box});
      flat.add(box.offsets, box.sizes, static_cast<std::uint32_t>(tile.index));
      boxes[tile.index] = box;
    }
    if (!is_full_grid(shape_, flat)) {
      TilingDefects defects = find_defects(shape_, flat);
      if (!defects.complete || !defects.gaps.empty() || !defects.overlaps.empty()) return false;
    }
    out_.boxes = std::move(boxes);
    out_.moves = std::move(moves);
    return true;
  }

  // Finds displaced tiles that match exactly one other place.
  void find_unique_places() {
    PlacesByContent<Contents, const Tile*> there;
    for (const Tile& tile : tiles_) {
      if (!tile.inside) continue;
      if (auto content = there_.content_of(tile.box))
        there.add({tile.box.sizes, content->hash}, &tile);
    }
    out_.telling = false;
    for (const Tile* tile : moved_) {
      const Contents contents{tile->box.sizes, tile->content->hash};
      if (!there.has(contents)) {
        ++out_.nowhere;
        continue;
      }
      auto found = there.only(contents);
      bool tells = tile->content->values.size() * bits_per_value() >= kMinDistinctBits;
      if (!found || !tells) continue;
      out_.telling = true;
      if ((*found)->in_place) ++out_.doubled;
      out_.moves.push_back({tile->box, (*found)->box});
    }
  }

  const CheckInput& input_;
  TensorId tensor_;
  Extents shape_;
  Dtype dtype_;
  TensorBoxes here_, there_;
  std::vector<Tile> tiles_;
  std::vector<Tile*> moved_;
  TilePlaces out_;
};

}  // namespace

std::uint64_t decode_budget_per_side(const CheckInput& input) {
  return std::min(kDecodedForBoxes, input.memory / (4 * worker_count()));
}

TilePlaces find_tile_places(const CheckInput& input, TensorId tensor, TensorId other,
                            bool every_byte) {
  const Checkpoint& reference = *input.reference;
  auto dtype = common_dtype(input.checkpoint.dtype(tensor), reference.dtype(other));
  bool readable = dtype && input.checkpoint.directory() != nullptr &&
                  reference.directory() != nullptr && !input.headers.empty() &&
                  compute_tiling(reference, other).tiling == Tiling::kExact;
  if (!readable) return {};
  return TilePlaceSolver(input, tensor, other, *dtype).solve(every_byte);
}

}  // namespace shw
