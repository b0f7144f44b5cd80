#include "core/formats/hdf5/hdf5_columns.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/base/checked.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/codecs.h"
#include "core/formats/hdf5/hdf5_deflated.h"
#include "core/formats/hdf5/hdf5_fill.h"
#include "core/formats/hdf5/hdf5_formats.h"
#include "core/tensor/element_text.h"

namespace shw {
namespace {

// Limits unwritten tiles, which need no bytes in a file.
constexpr std::size_t kFillTilesOfAny = 4096;
constexpr std::uint64_t kBytesOfATile = 32;
// Fill values are generated box by box and checked like data: 4 GiB take seconds.
constexpr std::uint64_t kFillBytesOfABox = std::uint64_t{256} << 20;
constexpr std::uint64_t kFillBytesOfAny = std::uint64_t{4} << 30;

// The first place of a tensor's box; the same box of other ranks is a replica.
struct Hdf5Place {
  ChunkId chunk{};
  std::string file;
  const Codec* codec = nullptr;
  Extents strides;  // of a tile; empty for whole datasets
};
using Hdf5Boxes = std::map<std::pair<Extents, Extents>, Hdf5Place>;

// True if another file already has this box in the same form; `place` becomes a replica.
bool is_replica(CheckpointBuilder& builder, const Hdf5Boxes& seen, const Hdf5Place& mine,
                const std::pair<Extents, Extents>& box, const ItemPlace& place) {
  auto first = seen.find(box);
  if (first == seen.end() || first->second.file == mine.file || first->second.codec != mine.codec ||
      first->second.strides != mine.strides)
    return false;
  builder.add_replica({first->second.chunk, builder.add_storage(place, mine.codec),
                       kHdf5Format.traits.writer_of_file(mine.file)});
  return true;
}

Extents offsets_of(const Hdf5Array& array) {
  return array.offsets ? *array.offsets : Extents(array.shape.size(), 0);
}

// Adds a contiguous dataset, or one in an unsupported form.
void add_hdf5_chunk(CheckpointBuilder& builder, const Hdf5Piece& piece, Hdf5Boxes& seen) {
  const Hdf5Array& array = *piece.array;
  const ItemPlace place{builder.file(piece.file),
                        static_cast<std::int64_t>(array.offset.value_or(array.unread_offset)),
                        static_cast<std::int64_t>(array.offset ? array.length : 0)};
  // An array without stored bytes (never written, or unreadable) gets an empty item place.
  const bool is_unread = array.unread != Hdf5Unsupported::kNothing;
  const bool is_placed = !is_unread && (array.offset || volume(array.shape) == 0);
  const std::pair box(offsets_of(array), array.shape);
  Hdf5Place mine{{}, piece.file, &kRawCodec, {}};
  if (array.offset && is_replica(builder, seen, mine, box, place)) return;
  ChunkId chunk = builder.add_chunk(box.first, box.second, is_placed ? place : ItemPlace{});
  mine.chunk = chunk;
  if (array.offset) seen.emplace(box, std::move(mine));
  if (is_unread)
    builder.set_view(chunk, builder.add_storage(place, &unsupported_codec(array.unread)));
}

// Adds each tile as a chunk: a view of a storage that may exceed the dataset's end, as HDF5 tiles
// do.
void add_hdf5_tiles(CheckpointBuilder& builder, const Hdf5Piece& piece, Hdf5Boxes& seen,
                    std::set<std::int64_t>& rows) {
  const Hdf5Array& array = *piece.array;
  const FileId file = builder.file(piece.file);
  const Extents base = offsets_of(array), strides = row_major_strides(array.tile_shape);
  for (const Hdf5Tile& tile : array.tiles) {
    const bool overhangs =
        !array.shape.empty() && array.shape[0] - tile.offsets[0] < array.tile_shape[0];
    const Codec& codec =
        array.is_deflated ? deflated_codec(array.is_shuffled, overhangs) : kRawCodec;
    Extents offsets = tile.offsets, sizes = array.tile_shape;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      sizes[d] = std::min(sizes[d], array.shape[d] - tile.offsets[d]);
      if (d < base.size()) offsets[d] = checked_add(offsets[d], base[d]).value_or(-1);
    }
    ItemPlace place{file, static_cast<std::int64_t>(tile.offset),
                    static_cast<std::int64_t>(tile.length)};
    const std::pair box(std::move(offsets), std::move(sizes));
    Hdf5Place mine{{}, piece.file, &codec, strides};
    if (is_replica(builder, seen, mine, box, place)) continue;
    mine.chunk = builder.add_chunk(box.first, box.second);
    builder.set_view(mine.chunk, builder.add_storage(place, &codec), 0, strides);
    if (array.is_deflated && array.is_shuffled && overhangs &&
        (rows.contains(array.tile_shape[0]) || rows.size() < kMaxTileRows)) {
      rows.insert(array.tile_shape[0]);
      builder.set_transforms(mine.chunk,
                             {std::string(kTileRows) + std::to_string(array.tile_shape[0])});
    }
    seen.emplace(box, std::move(mine));
  }
}

// Total size; empty if a box exceeds kFillBytesOfABox.
std::optional<std::uint64_t> bytes_of(const std::vector<Box>& boxes, Dtype dtype) {
  std::uint64_t all = 0;
  for (const Box& box : boxes) {
    auto elements = volume(box.sizes);
    if (!elements || static_cast<std::uint64_t>(*elements) > kFillBytesOfABox / size_of(dtype))
      return std::nullopt;
    all += static_cast<std::uint64_t>(*elements) * size_of(dtype);
  }
  return all;
}

// Adds unwritten elements with HDF5's fill value, and reports that they were not written.
void add_fill(CheckpointBuilder& builder, const std::string& fqn, const Hdf5Piece& piece,
              Hdf5Limits& limits) {
  const Hdf5Array& array = *piece.array;
  const std::vector<Box> boxes = never_written(array, limits.fill_tiles);
  if (boxes.empty()) return;
  const auto bytes = bytes_of(boxes, array.dtype);
  if (!bytes || *bytes > limits.fill_bytes) {
    Finding finding{.rule = "coverage-gap", .severity = Severity::kWarning};
    finding.cause = fmt::format(
        "Elements of {} in {} were never written: HDF5 reads its fill value there. They are too "
        "many to be read.",
        fqn, piece.file);
    finding.evidence = {{"file", piece.file}};
    finding.subjects.push_back(fqn);
    builder.add_finding(std::move(finding));
    return;
  }
  limits.fill_tiles -= boxes.size();
  limits.fill_bytes -= *bytes;
  Bytes value = array.fill.value;
  const bool is_zero = value.empty();
  const ItemPlace place{builder.file(piece.file), static_cast<std::int64_t>(array.fill.offset),
                        is_zero ? 1 : static_cast<std::int64_t>(value.size())};
  if (is_zero) value.resize(size_of(array.dtype));
  const StorageId storage = builder.add_storage(place, &fill_codec(is_zero));
  const Extents base = offsets_of(array);
  std::int64_t elements = 0;
  for (const Box& box : boxes) {
    Extents offsets = box.offsets;
    for (std::size_t d = 0; d < std::min(base.size(), offsets.size()); ++d)
      offsets[d] = checked_add(offsets[d], base[d]).value_or(-1);
    builder.set_view(builder.add_chunk(offsets, box.sizes), storage);
    elements += volume(box.sizes).value_or(0);
  }
  Finding finding{.rule = "coverage-gap", .severity = Severity::kWarning};
  finding.cause = fmt::format(
      "{} of the {} elements of {} in {} were never written: HDF5 reads its fill value there, {}.",
      elements, volume(array.shape).value_or(0), fqn, piece.file,
      element_text(array.dtype, value, 0));
  finding.evidence = {{"never_written", elements},
                      {"fill_value", element_text(array.dtype, value, 0)},
                      {"file", piece.file}};
  finding.subjects.push_back(fqn);
  builder.add_finding(std::move(finding));
}

}  // namespace

Hdf5Limits hdf5_limits(const std::vector<Hdf5Shard>& shards) {
  Hdf5Limits limits{kFillTilesOfAny, kFillBytesOfAny};
  for (const Hdf5Shard& shard : shards)
    limits.fill_tiles += static_cast<std::size_t>(shard.size / kBytesOfATile);
  return limits;
}

void add_hdf5_tensor(CheckpointBuilder& builder, const std::string& fqn,
                     const std::vector<Hdf5Piece>& pieces, Hdf5Limits& limits) {
  const Hdf5Array& first = *pieces.front().array;
  const Extents& shape = first.global_shape ? *first.global_shape : first.shape;
  builder.add_tensor(fqn, first.dtype, shape);
  Hdf5Boxes seen;
  for (const Hdf5Piece& piece : pieces) {
    const Hdf5Array& array = *piece.array;
    const bool is_tiled = array.is_tiled && array.unread == Hdf5Unsupported::kNothing;
    if (is_tiled) add_hdf5_tiles(builder, piece, seen, limits.tile_rows);
    const std::size_t before = limits.fill_tiles;
    add_fill(builder, fqn, piece, limits);
    if (!is_tiled && limits.fill_tiles == before) add_hdf5_chunk(builder, piece, seen);
    const Extents& said = array.global_shape ? *array.global_shape : array.shape;
    if (array.dtype != first.dtype || said != shape)
      builder.add_finding(bad_record_finding(
          fqn, fmt::format("In {} it is a part of {} of {}, in {} of {} of {}.", piece.file,
                           to_text(said), name(array.dtype), pieces.front().file, to_text(shape),
                           name(first.dtype))));
  }
}

}  // namespace shw
