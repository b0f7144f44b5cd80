#include "core/formats/hdf5/hdf5_open.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/checked.h"
#include "core/base/parallel.h"
#include "core/formats/common/codecs.h"
#include "core/formats/hdf5/hdf5_deflated.h"
#include "core/formats/hdf5/hdf5_fill.h"
#include "core/formats/hdf5/hdf5_formats.h"
#include "core/formats/hdf5/hdf5_walk.h"
#include "core/model/builder.h"
#include "core/tensor/element_text.h"

namespace shw {
namespace {

constexpr std::uint64_t kMostKerasIndex = std::uint64_t{64} << 20;
// Tiles that were never written take nothing in a file: as many as could have been, and some.
constexpr std::size_t kFillTilesOfAny = 4096;
constexpr std::uint64_t kBytesOfATile = 32;

Finding unreadable_part(std::string subject, std::string cause,
                        std::optional<std::uint64_t> at = std::nullopt) {
  Finding finding;
  finding.rule = "bad-record";
  finding.cause = std::move(cause);
  if (at) finding.evidence.emplace_back("offset", static_cast<std::int64_t>(*at));
  finding.subjects.push_back(std::move(subject));
  return finding;
}

// Which file holds which group: what is missing is known by it.
using KerasIndex = std::vector<std::pair<std::string, std::string>>;  // group, file

// {"weight_map": {"/layers/dense/vars": ["model_00000.weights.h5", ...], ...}}
Result<KerasIndex> read_keras_index(const Directory& directory, const std::string& path) {
  SHW_TRY(auto source, directory.open(path));
  if (source->size() > kMostKerasIndex)
    return fail(ErrorKind::kDamaged, "is too large to be an index", {path});
  SHW_TRY(Bytes bytes, read_bytes(*source, 0, source->size()));
  const char* text = reinterpret_cast<const char*>(bytes.data());
  auto json = nlohmann::json::parse(text, text + bytes.size(), nullptr, false);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    return fail(ErrorKind::kDamaged, "is no JSON object with a weight_map", {path});
  KerasIndex index;
  for (const auto& [group, files] : json["weight_map"].items()) {
    auto add = [&, name = group](const nlohmann::json& file) {
      if (file.is_string())
        index.emplace_back(name.substr(name.starts_with('/') ? 1 : 0), file.get<std::string>());
    };
    if (files.is_array())
      std::for_each(files.begin(), files.end(), add);
    else
      add(files);
  }
  if (index.empty()) return fail(ErrorKind::kDamaged, "names no file", {path});
  return index;
}

struct Hdf5Shard {
  std::string path;
  std::uint64_t size = 0;
  Hdf5Walk walk;
};

// A dataset on its way into the columns.
struct Hdf5Piece {
  std::string file;
  const Hdf5Array* array;
};

// Where a box of a tensor was first seen: what another rank has of it is a replica.
struct Hdf5Place {
  ChunkId chunk{};
  std::string file;
  const Codec* codec = nullptr;
  Extents strides;  // of a tile; empty for all of a dataset
};
using Hdf5Boxes = std::map<std::pair<Extents, Extents>, Hdf5Place>;

// True where that box is another file's already, in the same form, and `place` is one more copy.
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

// All of it in one piece, or in a form that is not read.
void add_hdf5_chunk(CheckpointBuilder& builder, const Hdf5Piece& piece, Hdf5Boxes& seen) {
  const Hdf5Array& array = *piece.array;
  const ItemPlace place{builder.file(piece.file),
                        static_cast<std::int64_t>(array.offset.value_or(array.unread_at)),
                        static_cast<std::int64_t>(array.offset ? array.length : 0)};
  // Elements that were never written have no place.
  const bool is_unread = array.unread != Hdf5Unread::kNothing;
  const bool is_placed = !is_unread && (array.offset || volume(array.shape) == 0);
  const std::pair box(offsets_of(array), array.shape);
  Hdf5Place mine{{}, piece.file, &kRawCodec, {}};
  if (array.offset && is_replica(builder, seen, mine, box, place)) return;
  ChunkId chunk = builder.add_chunk(box.first, box.second, is_placed ? place : ItemPlace{});
  mine.chunk = chunk;
  if (array.offset) seen.emplace(box, std::move(mine));
  if (is_unread) builder.set_view(chunk, builder.add_storage(place, &unread_codec(array.unread)));
}

// Every tile is a chunk: a view of a storage that goes past the end of the dataset where the tile
// does.
void add_hdf5_tiles(CheckpointBuilder& builder, const Hdf5Piece& piece, Hdf5Boxes& seen) {
  const Hdf5Array& array = *piece.array;
  const FileId file = builder.file(piece.file);
  const Extents base = offsets_of(array), strides = row_major_strides(array.tile_shape);
  const Codec& codec = array.is_deflated ? deflated_codec(array.is_shuffled) : kRawCodec;
  for (const Hdf5Tile& tile : array.tiles) {
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
    seen.emplace(box, std::move(mine));
  }
}

// What was never written reads as HDF5 reads it. That it was never written is said.
void add_fill(CheckpointBuilder& builder, const std::string& fqn, const Hdf5Piece& piece,
              std::size_t& room) {
  const Hdf5Array& array = *piece.array;
  const std::vector<Box> boxes = never_written(array, room);
  if (boxes.empty()) return;
  room -= boxes.size();
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
  Finding finding;
  finding.rule = "coverage-gap";
  finding.severity = Severity::kWarning;
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

void add_hdf5_tensor(CheckpointBuilder& builder, const std::string& fqn,
                     const std::vector<Hdf5Piece>& pieces, std::size_t& room) {
  const Hdf5Array& first = *pieces.front().array;
  const Extents& shape = first.global_shape ? *first.global_shape : first.shape;
  builder.add_tensor(fqn, first.dtype, shape);
  Hdf5Boxes seen;
  for (const Hdf5Piece& piece : pieces) {
    const Hdf5Array& array = *piece.array;
    const bool is_tiled = array.is_tiled && array.unread == Hdf5Unread::kNothing;
    if (is_tiled) add_hdf5_tiles(builder, piece, seen);
    const std::size_t before = room;
    add_fill(builder, fqn, piece, room);
    if (!is_tiled && room == before) add_hdf5_chunk(builder, piece, seen);
    const Extents& said = array.global_shape ? *array.global_shape : array.shape;
    if (array.dtype != first.dtype || said != shape)
      builder.add_finding(unreadable_part(
          fqn, fmt::format("In {} it is a part of {} of {}, in {} of {} of {}.", piece.file,
                           to_text(said), name(array.dtype), pieces.front().file, to_text(shape),
                           name(first.dtype))));
  }
}

void add_unread_arrays(CheckpointBuilder& builder, const Hdf5Shard& shard) {
  for (const auto& [path, array] : shard.walk.arrays) {
    if (*array) continue;
    const Error& error = array->error();
    Finding finding = unreadable_part(path, fmt::format("In {}: {}.", shard.path, error.message),
                                      error.place.offset);
    finding.subjects.push_back(shard.path);
    builder.add_finding(std::move(finding));
    builder.add_stray({path, std::nullopt, {builder.file(shard.path), 0, 0}});
  }
  for (const auto& [path, error] : shard.walk.lost_groups)
    builder.add_finding(
        unreadable_part(shard.path,
                        fmt::format("In {}, what lies in the group {} cannot be told: {}.",
                                    shard.path, path, error.message),
                        error.place.offset));
  for (const auto& [path, file] : shard.walk.links_outside) {
    Finding finding;
    finding.rule = "not-looked-at";
    finding.severity = Severity::kInfo;
    finding.cause = fmt::format("{} of {} is a link to another file, {}, and was not followed.",
                                path, shard.path, file);
    finding.evidence = {{"file", shard.path}, {"link", file}};
    finding.subjects.push_back(path);
    builder.add_finding(std::move(finding));
  }
  if (shard.walk.end_of_file > shard.size)
    builder.add_finding(unreadable_part(
        shard.path,
        fmt::format("{} is to end at byte {} by its own word and ends at {}: it was cut "
                    "short.",
                    shard.path, shard.walk.end_of_file, shard.size),
        shard.size));
}

// Two files with the same names that do not say which parts they are: two checkpoints.
Status check_parts(const std::map<std::string, std::vector<Hdf5Piece>>& tensors,
                   const Directory& directory) {
  for (const auto& [fqn, pieces] : tensors) {
    bool said = std::all_of(pieces.begin(), pieces.end(), [](const Hdf5Piece& piece) {
      return piece.array->global_shape && piece.array->offsets;
    });
    if (pieces.size() < 2 || said) continue;
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("holds several checkpoints: {} has {} and so has {}", pieces[0].file, fqn,
                    pieces[1].file),
        {directory.name()},
        "Open one of them by its name. Parts of one tensor say so by the attributes offsets "
        "and global_shape.");
  }
  return {};
}

// Whether it holds anything below that group, or could: what it holds may not be known.
bool has_group(const Hdf5Walk& walk, const std::string& group) {
  auto lies_below = [&](const std::string& path) {
    return path.starts_with(group) && (path.size() == group.size() || path[group.size()] == '/');
  };
  return std::any_of(walk.arrays.begin(), walk.arrays.end(),
                     [&](const auto& array) { return lies_below(array.path); }) ||
         std::any_of(walk.links_outside.begin(), walk.links_outside.end(),
                     [&](const auto& link) { return lies_below(link.first); });
}

// What the index places in a file that does not have it is as gone as with the file.
void hold_against_index(CheckpointBuilder& builder, const KerasIndex& index,
                        const std::vector<Hdf5Shard>& shards) {
  for (const auto& [group, file] : index) {
    auto shard = std::find_if(shards.begin(), shards.end(),
                              [&, name = file](const Hdf5Shard& one) { return one.path == name; });
    if (shard == shards.end() || has_group(shard->walk, group)) continue;
    Finding finding = unreadable_part(
        group,
        fmt::format("The index places {} in {}, and nothing of it lies there.", group, file));
    finding.subjects.push_back(file);
    builder.add_finding(std::move(finding));
    builder.add_stray({group, std::nullopt, {builder.file(file), 0, 0}});
  }
}

struct Hdf5Files {
  std::vector<std::string> files;
  KerasIndex index;
};

Result<Hdf5Files> list_hdf5_files(const Directory& directory) {
  SHW_TRY(auto entries, directory.list());
  Hdf5Files listed;
  std::vector<std::string> indices;
  for (const Entry& entry : entries) {
    if (entry.path.find('/') != std::string::npos || entry.kind != EntryKind::kFile) continue;
    if (entry.path.ends_with(kKerasIndexSuffix)) indices.push_back(entry.path);
    if (has_hdf5_name(entry.path) || entries.size() == 1) listed.files.push_back(entry.path);
  }
  if (indices.size() > 1)
    return fail(ErrorKind::kUnsupported,
                "holds several checkpoints: " + indices[0] + " and " + indices[1],
                {directory.name()}, "Move one of them into a folder of its own.");
  if (indices.empty()) return listed;
  SHW_TRY(listed.index, read_keras_index(directory, indices[0]));
  listed.files.clear();
  for (const auto& [group, file] : listed.index) {
    if (std::find(listed.files.begin(), listed.files.end(), file) == listed.files.end())
      listed.files.push_back(file);
  }
  return listed;
}

Result<Hdf5Shard> read_hdf5_shard(const Directory& directory, const std::string& path) {
  SHW_TRY(auto source, directory.open(path));
  SHW_TRY(Hdf5Walk walk, walk_hdf5(source));
  return Hdf5Shard{path, source->size(), std::move(walk)};
}

}  // namespace

bool has_hdf5_name(std::string_view path) {
  return path.ends_with(".h5") || path.ends_with(".hdf5");
}

OpenedCheckpoint open_hdf5(std::shared_ptr<const Directory> directory, Progress* progress) {
  SHW_TRY(Hdf5Files listed, list_hdf5_files(*directory));
  if (progress != nullptr) progress->begin(Phase::kOpening, listed.files.size(), false);
  std::vector<Result<Hdf5Shard>> read(listed.files.size());
  SHW_CHECK(each_in_parallel(read.size(), [&](std::size_t i) -> Status {
    if (is_cancelled(progress)) return cancelled_error();
    read[i] = read_hdf5_shard(*directory, listed.files[i]);
    if (progress != nullptr) progress->add(1);
    return {};
  }));

  CheckpointBuilder builder;
  builder.set_format(kHdf5Format);
  builder.set_directory(directory);
  std::vector<Hdf5Shard> shards;
  for (std::size_t i = 0; i < read.size(); ++i) {
    builder.file(listed.files[i]);
    if (read[i]) {
      shards.push_back(std::move(*read[i]));
      continue;
    }
    const Error& error = read[i].error();
    builder.add_finding(unreadable_part(
        listed.files[i],
        fmt::format("The file {} cannot be read: {}.", listed.files[i], error.message),
        error.place.offset));
    for (const auto& [group, file] : listed.index) {
      if (file == listed.files[i])
        builder.add_stray({group, std::nullopt, {builder.file(file), 0, 0}});
    }
  }
  if (shards.empty()) {
    if (read.empty()) return fail(ErrorKind::kIo, "holds no HDF5 file", {directory->name()});
    return tl::unexpected<Error>(std::move(read.front()).error());
  }
  std::map<std::string, std::vector<Hdf5Piece>> tensors;
  std::vector<std::string> order;
  for (const Hdf5Shard& shard : shards) {
    for (const auto& [path, array] : shard.walk.arrays) {
      if (!*array) continue;
      auto& pieces = tensors[path];
      if (pieces.empty()) order.push_back(path);
      pieces.push_back({shard.path, &**array});
    }
  }
  SHW_CHECK(check_parts(tensors, *directory));
  std::size_t room = kFillTilesOfAny;
  for (const Hdf5Shard& shard : shards)
    room += static_cast<std::size_t>(shard.size / kBytesOfATile);
  for (const std::string& fqn : order) add_hdf5_tensor(builder, fqn, tensors[fqn], room);
  for (const Hdf5Shard& shard : shards) add_unread_arrays(builder, shard);
  hold_against_index(builder, listed.index, shards);
  return builder.finish();
}

}  // namespace shw
