#include "core/formats/orbax/zarr_columns.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/orbax/zarr_shards.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

constexpr std::uint64_t kMaxZarrJson = std::uint64_t{1} << 20;
// Limit of unwritten chunks per array that read as zeros, in addition to the number of written
// ones.
constexpr std::int64_t kMaxAbsent = 1 << 16;

// An array and the keys of its chunks.
struct FoundArray {
  std::string name;  // "" for one at the top
  const StoredKey* json = nullptr;
  bool is_version_three = false;
  std::vector<const StoredKey*> chunks = {};
};
using FoundArrays = std::map<std::string, FoundArray, std::less<>>;

// The array's name in a key: "params.kernel" for "params.kernel/.zarray"; nullopt for other keys.
std::optional<std::string_view> zarr_array_name_of_key(std::string_view key,
                                                       std::string_view file) {
  if (key == file) return std::string_view();
  if (!key.ends_with(file) || key[key.size() - file.size() - 1] != '/') return std::nullopt;
  return key.substr(0, key.size() - file.size() - 1);
}

FoundArrays arrays_in(const std::vector<StoredKey>& keys) {
  FoundArrays arrays;
  for (const StoredKey& key : keys) {
    for (bool is_three : {false, true}) {
      const auto name = zarr_array_name_of_key(key.key, is_three ? kZarrThree : kZarrTwo);
      if (name)
        arrays.try_emplace(std::string(*name), FoundArray{std::string(*name), &key, is_three});
    }
  }
  for (const StoredKey& key : keys) {
    // Assigns the key to the array in the nearest enclosing folder.
    for (std::size_t end = key.key.rfind('/'); end != std::string::npos;
         end = end == 0 ? std::string::npos : key.key.rfind('/', end - 1)) {
      const auto found = arrays.find(std::string_view(key.key).substr(0, end));
      if (found == arrays.end()) continue;
      found->second.chunks.push_back(&key);
      break;
    }
    if (key.key.find('/') == std::string::npos && arrays.contains(""))
      arrays.find("")->second.chunks.push_back(&key);
  }
  return arrays;
}

Extents column_major_strides(const Extents& sizes) {
  Extents strides(sizes.size(), 1);
  for (std::size_t d = 1; d < sizes.size(); ++d) strides[d] = strides[d - 1] * sizes[d - 1];
  return strides;
}

Extents clipped(const ZarrArray& array, const Extents& offsets, const Extents& sizes) {
  Extents out = sizes;
  for (std::size_t d = 0; d < out.size(); ++d)
    out[d] = std::min(sizes[d], array.shape[d] - offsets[d]);
  return out;
}

// Adds one array to the checkpoint.
class ArrayColumns {
 public:
  ArrayColumns(CheckpointBuilder& builder, const ZarrStore& store, const FoundArray& found,
               const ZarrArray& array)
      : builder_(builder), store_(store), found_(found), array_(array) {}

  Status add(const std::string& fqn, const Progress* progress) {
    fqn_ = fqn;
    builder_.add_tensor(fqn, array_.dtype, array_.shape);
    std::map<Extents, const StoredKey*> grid;
    const std::size_t skipped = found_.name.empty() ? 0 : found_.name.size() + 1;
    for (const StoredKey* key : found_.chunks) {
      auto index = zarr_chunk_index(array_, std::string_view(key->key).substr(skipped));
      if (index) grid.emplace(std::move(*index), key);
    }
    for (const auto& [index, key] : grid) {
      if (is_cancelled(progress)) return cancelled_error();
      Extents offsets = index;
      for (std::size_t d = 0; d < offsets.size(); ++d) offsets[d] *= array_.chunk[d];
      if (array_.is_sharded)
        add_shard(*key, offsets);
      else
        add_chunk(offsets, array_.chunk, *key);
    }
    add_zero_chunks();
    return {};
  }

 private:
  void add_chunk(const Extents& offsets, const Extents& sizes, const StoredKey& place) {
    const auto offset = narrow<std::int64_t>(place.offset),
               length = narrow<std::int64_t>(place.length);
    written_.insert(offsets);
    const ChunkId chunk = builder_.add_chunk(offsets, clipped(array_, offsets, sizes));
    const StorageId storage =
        builder_.add_storage({builder_.file(place.path), offset.value_or(-1), length.value_or(-1)},
                             &zarr_codec(array_.pipe));
    builder_.set_view(
        chunk, storage, 0,
        array_.is_column_major ? column_major_strides(sizes) : row_major_strides(sizes));
  }

  void add_shard(const StoredKey& key, const Extents& offsets) {
    auto source = store_.folder.open(key.path);
    auto pieces = source ? shard_pieces(**source, key, array_, offsets)
                         : tl::unexpected<Error>(std::move(source).error());
    if (!pieces) {
      Finding finding =
          bad_record_finding(fqn_, fmt::format("In {}: {}.", key.path, pieces.error().message),
                             pieces.error().place.offset);
      finding.subjects.push_back(key.path);
      builder_.add_finding(std::move(finding));
      has_damage_ = true;
      return;
    }
    for (const ShardPiece& piece : *pieces)
      add_chunk(piece.offsets, array_.inner, {key.key, key.path, piece.offset, piece.length});
  }

  // Adds unwritten chunks of the grid, or inner chunks of shards, if they read as zeros. Others are
  // gaps, which a rule reports.
  void add_zero_chunks() {
    const bool are_zeros =
        store_.absent == AbsentChunks::kReadAsZeros && array_.fill_is_zero && !has_damage_;
    const Extents& piece = array_.is_sharded ? array_.inner : array_.chunk;
    Extents counts;
    for (std::size_t d = 0; d < piece.size(); ++d)
      counts.push_back(array_.shape[d] / piece[d] + (array_.shape[d] % piece[d] != 0 ? 1 : 0));
    const auto all = checked_volume(counts);
    const auto there = static_cast<std::int64_t>(written_.size());
    if (!are_zeros || !all || *all == there || *all - there > kMaxAbsent + there) return;
    const ItemPlace place{builder_.file(found_.json->path),
                          static_cast<std::int64_t>(found_.json->offset), 1};
    const StorageId storage = builder_.add_storage(place, &kZarrZerosCodec);
    Extents at(piece.size(), 0);
    for (std::int64_t i = 0; i < *all; ++i) {
      if (!written_.contains(at))
        builder_.set_view(builder_.add_chunk(at, clipped(array_, at, piece)), storage);
      for (std::size_t d = at.size(); d-- > 0;) {
        at[d] += piece[d];
        if (at[d] < array_.shape[d]) break;
        at[d] = 0;
      }
    }
    report_unwritten_chunks(*all - there, *all);
  }

  void report_unwritten_chunks(std::int64_t absent, std::int64_t all) {
    Finding finding{.rule = "coverage-gap", .severity = Severity::kInfo};
    finding.cause = fmt::format(
        "{} of the {} chunks of {} were not written: zarr omits a chunk whose elements are all 0, "
        "and reads it as 0. A lost chunk looks the same.",
        absent, all, fqn_);
    finding.evidence = {{"not_written", absent}, {"chunks", all}};
    finding.subjects.push_back(fqn_);
    builder_.add_finding(std::move(finding));
  }

  CheckpointBuilder& builder_;
  const ZarrStore& store_;
  const FoundArray& found_;
  const ZarrArray& array_;
  std::string fqn_;
  std::set<Extents> written_;  // offsets of written chunks
  bool has_damage_ = false;
};

Result<std::optional<ZarrArray>> read_zarr_array(const ZarrStore& store, const FoundArray& found) {
  SHW_TRY(auto source, store.folder.open(found.json->path));
  if (found.json->length > kMaxZarrJson)
    return fail(ErrorKind::kDamaged, "is too long for zarr array metadata");
  SHW_TRY(Bytes json, read_bytes(*source, found.json->offset, found.json->length));
  return parse_zarr_array(json, found.is_version_three);
}

void report_unread_array(CheckpointBuilder& builder, const FoundArray& found,
                         const std::string& fqn, const Error& error) {
  builder.add_unclaimed_record({fqn, std::nullopt, {builder.file(found.json->path), 0, 0}});
  Finding finding = bad_record_finding(
      fqn, fmt::format("{} {} ({}).", fqn, error.message, found.json->path), error.place.offset);
  finding.subjects.push_back(found.json->path);
  if (error.kind == ErrorKind::kUnsupported) {
    finding.rule = "not-looked-at";
    finding.severity = Severity::kInfo;
  }
  builder.add_finding(std::move(finding));
}

}  // namespace

Result<std::vector<std::string>> add_zarr_arrays(CheckpointBuilder& builder, const ZarrStore& store,
                                                 const Progress* progress) {
  std::vector<std::string> names;
  for (const auto& [name, found] : arrays_in(store.keys)) {
    if (is_cancelled(progress)) return cancelled_error();
    auto array = read_zarr_array(store, found);
    const std::string fqn = store.prefix + (name.empty() ? "array" : name);
    if (array && !*array) continue;  // a group
    names.push_back(fqn);
    if (!array)
      report_unread_array(builder, found, fqn, array.error());
    else
      SHW_CHECK(ArrayColumns(builder, store, found, **array).add(fqn, progress));
  }
  return names;
}

}  // namespace shw
