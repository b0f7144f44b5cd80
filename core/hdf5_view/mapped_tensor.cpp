#include "core/hdf5_view/mapped_tensor.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "core/base/checked.h"
#include "core/hdf5_view/tile_copies.h"
#include "core/tiles/coverage.h"

namespace shw {
namespace {

constexpr std::size_t kMostDims = 32;        // per dataset
constexpr std::size_t kMaxSegments = 2048;   // per external file list; the library allows 2,729
constexpr std::size_t kMaxTiles = 1u << 16;  // per virtual dataset: lookups are linear

MappedTensor refused(std::string why) {
  MappedTensor out;
  out.why = std::move(why);
  return out;
}

// For each distinct box, the first chunk with elements.
struct ChosenChunks {
  std::vector<ChunkId> chunks;
  EqualBoxes copies;    // further chunks of the same boxes
  std::string outside;  // why a chunk was skipped
};

ChosenChunks choose_chunks(const Checkpoint& checkpoint, TensorId tensor) {
  ChosenChunks chosen;
  std::map<std::pair<Extents, Extents>, ChunkId> seen;
  ExtentsView shape = checkpoint.shape(tensor);
  const bool alone = checkpoint.chunks(tensor).size() == 1;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    ExtentsView offsets = checkpoint.offsets(chunk), sizes = checkpoint.sizes(chunk);
    if (!is_inside(offsets, sizes, shape)) {
      chosen.outside = "the tile at " + to_text(offsets) + " of sizes " + to_text(sizes) +
                       " is not inside the shape " + to_text(shape);
      continue;
    }
    if (volume(sizes) == 0) continue;
    if (!alone) {
      auto [first, is_new] = seen.emplace(std::pair(copy_of(offsets), copy_of(sizes)), chunk);
      if (!is_new) {
        chosen.copies.emplace_back(first->second, chunk);
        continue;
      }
    }
    chosen.chunks.push_back(chunk);
  }
  return chosen;
}

TilingDefects defects_of(const Checkpoint& checkpoint, ExtentsView shape,
                         const std::vector<ChunkId>& chunks) {
  FlatBoxes boxes;
  boxes.ndim = shape.size();
  for (std::size_t i = 0; i < chunks.size(); ++i)
    boxes.add(checkpoint.offsets(chunks[i]), checkpoint.sizes(chunks[i]),
              static_cast<std::uint32_t>(i));
  if (is_full_grid(shape, boxes)) return {};
  return find_defects(shape, boxes);
}

// Tiles sorted by position if each is contiguous in the row-major tensor; else empty.
std::optional<std::vector<std::size_t>> tiles_in_memory_order(
    ExtentsView shape, const std::vector<MappedTile>& tiles) {
  Extents strides = row_major_strides(shape);
  std::vector<std::int64_t> first(tiles.size(), 0);
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const Box& box = tiles[i].box;
    bool is_cut = false;
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (is_cut && box.sizes[d] != 1) return std::nullopt;
      is_cut = is_cut || box.sizes[d] != shape[d];
      first[i] += box.offsets[d] * strides[d];
    }
  }
  std::vector<std::size_t> order(tiles.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return first[a] < first[b]; });
  return order;
}

void append(std::vector<ByteRun>& segments, const ByteRun& run) {
  if (!segments.empty() && segments.back().file == run.file &&
      segments.back().offset + segments.back().length == run.offset)
    segments.back().length += run.length;
  else
    segments.push_back(run);
}

// Maps the whole tensor by one list of segments if its tiles are contiguous in order, as FSDP saves
// it. Takes a quarter of a virtual dataset's time to write, and a fifth to read.
bool map_as_one_segment_list(ExtentsView shape, MappedTensor& out) {
  auto order = tiles_in_memory_order(shape, out.tiles);
  if (!order) return false;
  std::vector<ByteRun> segments;
  for (std::size_t i : *order) {
    if (out.tiles[i].count != 0) return false;
    for (const ByteRun& run : out.tiles[i].runs) append(segments, run);
    if (segments.size() > kMaxSegments) return false;
  }
  out.segments = std::move(segments);
  out.tiles.clear();
  return true;
}

// Reasons why tiles of a tensor cannot be mapped in place.
struct MappingObstacles {
  std::string elsewhere_reason, missing_reason;  // first reason of each kind
  std::int64_t unmapped = 0;                     // elements of both kinds
  std::size_t others = 0;                        // tiles that are mapped from a replica
};

MappingObstacles map_tiles(const Checkpoint& checkpoint, const ChosenChunks& chosen,
                           std::vector<MappedTile>& tiles) {
  MappingObstacles obstacles;
  for (ChunkId chunk : chosen.chunks) {
    bool is_another = false;
    auto mapped = map_any_copy(checkpoint, chunk, chosen.copies, is_another);
    if (is_another) ++obstacles.others;
    if (auto* tile = std::get_if<MappedTile>(&mapped)) {
      tiles.push_back(std::move(*tile));
      continue;
    }
    auto& obstacle = std::get<MappingFailure>(mapped);
    std::string& first = obstacle.is_there ? obstacles.elsewhere_reason : obstacles.missing_reason;
    if (first.empty()) first = std::move(obstacle.why);
    obstacles.unmapped += volume(checkpoint.sizes(chunk)).value_or(0);
  }
  return obstacles;
}

// The reason, known from metadata alone, why the tensor is incomplete.
std::string why_incomplete(const ChosenChunks& chosen, const TilingDefects& defects) {
  if (!chosen.outside.empty()) return chosen.outside;
  if (defects.gaps.empty()) return {};
  return fmt::format("{} of its elements are in no chunk, the first at {}", defects.missing,
                     to_text(defects.gaps.front()));
}

std::string repeated_tiles_note(const ChosenChunks& chosen, const MappingObstacles& obstacles) {
  std::string note;
  if (!chosen.copies.empty())
    note = fmt::format("{} of its tiles were saved more than once", chosen.copies.size());
  if (obstacles.others != 0)
    note += fmt::format("{}of {} of its tiles the first copy cannot be read, and another is mapped",
                        note.empty() ? "" : "; ", obstacles.others);
  return note;
}

}  // namespace

MappedTensor map_tensor(const Checkpoint& checkpoint, TensorId tensor) {
  ExtentsView shape = checkpoint.shape(tensor);
  if (size_of(checkpoint.dtype(tensor)) == 0) return refused("its dtype is not known");
  if (shape.size() > kMostDims)
    return refused(fmt::format("it has {} dimensions, and HDF5 takes {}", shape.size(), kMostDims));
  auto elements = volume(shape);
  if (!elements) return refused("the shape " + to_text(shape) + " is impossible");

  ChosenChunks chosen = choose_chunks(checkpoint, tensor);
  MappedTensor out;
  if (chosen.chunks.empty()) {
    out.mapping = *elements == 0 && chosen.outside.empty() ? Mapping::kSegments : Mapping::kRefused;
    if (*elements != 0) out.why = "no tile of it was saved";
    if (!chosen.outside.empty()) out.why = chosen.outside;
    return out;
  }
  TilingDefects defects = defects_of(checkpoint, shape, chosen.chunks);
  if (!defects.overlaps.empty())
    return refused("its tiles overlap in part, and it is not known whose elements are right");
  if (!defects.complete) return refused("its tiles are too tangled to be distinguished");
  if (std::string why = differing_copies_reason(checkpoint, chosen.chunks, chosen.copies);
      !why.empty())
    return refused(std::move(why));
  MappingObstacles obstacles = map_tiles(checkpoint, chosen, out.tiles);
  out.note = repeated_tiles_note(chosen, obstacles);
  out.why = why_incomplete(chosen, defects);
  if (!obstacles.missing_reason.empty()) out.why = obstacles.missing_reason;
  if (!out.why.empty()) {
    out.mapping = Mapping::kPartly;
    out.missing = std::min(defects.missing + obstacles.unmapped, *elements);
    return out;
  }
  out.why = obstacles.elsewhere_reason;
  if (out.why.empty() && out.tiles.size() > kMaxTiles)
    out.why = fmt::format("it has {} tiles, and HDF5 takes {}", out.tiles.size(), kMaxTiles);
  if (out.why.empty()) {
    out.mapping = map_as_one_segment_list(shape, out) ? Mapping::kSegments : Mapping::kTiles;
    return out;
  }
  out.mapping = Mapping::kNotInPlace;
  out.tiles.clear();
  out.chunks = std::move(chosen.chunks);
  return out;
}

}  // namespace shw
