#include "core/formats/hdf5/hdf5_shards.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "core/base/json.h"
#include "core/formats/common/byte_order_mark.h"
#include "core/formats/common/lfs_pointer.h"
#include "core/formats/common/top_file.h"
#include "core/formats/common/zip_check.h"
#include "core/formats/zip/zip.h"
#include "core/model/checkpoint.h"

namespace shw {
namespace {

constexpr std::uint64_t kMaxKerasIndex = std::uint64_t{64} << 20;
constexpr std::string_view kWeightsOfArchive = "model.weights.h5";

// {"weight_map": {"/layers/dense/vars": ["model_00000.weights.h5", ...], ...}}
Result<KerasIndex> read_keras_index(const Directory& directory, const std::string& path) {
  SHW_TRY(auto source, directory.open(path));
  if (source->size() > kMaxKerasIndex)
    return fail(ErrorKind::kDamaged, "is too large for an index", {path});
  SHW_TRY(Bytes bytes, read_bytes(*source, 0, source->size()));
  if (begins_with_byte_order_mark(bytes))
    return fail(ErrorKind::kDamaged, "begins with a byte order mark, which Python's json refuses",
                {path, 0});
  auto json =
      parse_json<nlohmann::json>({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).tree;
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    return fail(ErrorKind::kDamaged, "is not a JSON object with a weight_map", {path});
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

// The place of the weights in a zip archive. Keras stores them uncompressed; other programs may
// not.
Result<FileRange> weights_range_in_keras_zip(const std::shared_ptr<const ByteSource>& source) {
  SHW_TRY(ZipReader archive, ZipReader::open(source, 0, source->size()));
  const auto& entries = archive.entries();
  auto weights = std::find_if(entries.begin(), entries.end(), [](const ZipEntry& entry) {
    return entry.name == kWeightsOfArchive;
  });
  if (weights == entries.end())
    return fail(ErrorKind::kDamaged, "is an archive of Keras without a model.weights.h5",
                {source->name()});
  if (weights->deflated)
    return fail(ErrorKind::kUnsupported,
                "holds its model.weights.h5 compressed: no tensor of it can be read in place",
                {source->name(), weights->header_offset},
                "Unzip it and open the model.weights.h5 inside. Keras does not compress it.");
  SHW_TRY(std::uint64_t begin, archive.data_offset(*weights));
  return FileRange{begin, weights->length};
}

}  // namespace

bool has_hdf5_name(std::string_view path) {
  return path.ends_with(".h5") || path.ends_with(".hdf5");
}

Result<Hdf5Files> list_hdf5_files(const Directory& directory) {
  SHW_TRY(auto entries, directory.list());
  Hdf5Files listed;
  std::vector<std::string> indices;
  for (const Entry& entry : entries) {
    if (!is_top_file(entry)) continue;
    if (entry.path.ends_with(kKerasIndexSuffix)) indices.push_back(entry.path);
    if (has_hdf5_name(entry.path) || entry.path.ends_with(kKerasArchiveSuffix) ||
        entries.size() == 1)
      listed.files.push_back(entry.path);
  }
  if (indices.size() > 1)
    return fail(ErrorKind::kUnsupported,
                "holds several checkpoints: " + indices[0] + " and " + indices[1],
                {directory.name()}, "Move one of them into a separate folder.");
  if (indices.empty()) return listed;
  SHW_TRY(listed.index, read_keras_index(directory, indices[0]));
  listed.files.clear();
  std::set<std::string_view> known;
  for (const auto& [group, file] : listed.index) {
    if (known.insert(file).second) listed.files.push_back(file);
  }
  return listed;
}

Result<DataCheck> check_keras_archive(const std::shared_ptr<const ByteSource>& file,
                                      Progress* progress) {
  if (!file->name().ends_with(kKerasArchiveSuffix)) return DataCheck{};
  return check_zip_records(file, progress);
}

Result<Hdf5Shard> read_hdf5_shard(const Directory& directory, const std::string& path) {
  SHW_TRY(auto source, directory.open(path));
  SHW_CHECK(check_is_no_lfs_pointer(*source));
  FileRange part{0, source->size()};
  if (path.ends_with(kKerasArchiveSuffix)) {
    SHW_TRY(part, weights_range_in_keras_zip(source));
    source = window(std::move(source), part.offset, part.length);
  }
  SHW_TRY(Hdf5Walk walk, walk_hdf5(std::move(source), part.offset));
  return Hdf5Shard{path, part.offset, part.length, std::move(walk)};
}

}  // namespace shw
