// Lays out safetensors files: changed files of the source, with the bytes that they keep, and new
// ones. The index is written last.
#include "core/formats/safetensors/safetensors_format_writer.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/formats/common/safetensors_header.h"
#include "core/formats/common/top_file.h"
#include "core/formats/safetensors/safetensors_index.h"
#include "core/formats/safetensors/safetensors_metadata.h"
#include "core/formats/safetensors/safetensors_names.h"
#include "core/formats/safetensors/safetensors_new.h"
#include "core/formats/safetensors/safetensors_placing.h"

namespace shw {
namespace {

// The "format" value that loaders require in every file: "pt", or that of the source ("mlx").
std::string safetensors_format_metadata(const Outputs& outputs) {
  constexpr const char* kTorch = "pt";
  const Checkpoint* source = outputs.source;
  if (source == nullptr || source->directory() == nullptr) return kTorch;
  for (const FileRow& file : source->files()) {
    if (!file.referenced || !file.safe || !file.path.ends_with(kSafetensorsSuffix)) continue;
    auto opened = source->directory()->open(file.path);
    auto header = opened ? read_safetensors_header(**opened)
                         : Result<SafetensorsHeader>(tl::unexpected(opened.error()));
    const std::string* word = header ? header->find_metadata("format") : nullptr;
    return word == nullptr || word->empty() ? kTorch : *word;
  }
  return kTorch;
}

using MetadataEntries = std::map<std::string, std::string>;

// Metadata for the headers of new files.
struct NewSaveMetadata {
  std::string word;                                        // safetensors_format_metadata
  std::map<std::string, MetadataEntries, std::less<>> of;  // by folder
};

std::string_view folder_of_file(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

// Metadata entries may name tensors and describe how they are packed (torchao). They stay valid
// only if no tensor changes name, dtype or shape.
bool tensors_are_as_before(const Outputs& outputs) {
  return std::all_of(outputs.tensors.begin(), outputs.tensors.end(),
                     [&](const OutputTensor& tensor) {
                       if (!tensor.before) return false;
                       const Checkpoint& source = *outputs.source;
                       return source.fqn(*tensor.before) == tensor.fqn &&
                              source.dtype(*tensor.before) == tensor.dtype &&
                              std::ranges::equal(source.shape(*tensor.before), tensor.shape);
                     });
}

// Copies metadata of the source's files in a folder ("lora_adapter_metadata" of diffusers) to the
// new files there, except keys with several different values.
NewSaveMetadata metadata_of_source(const Outputs& outputs) {
  NewSaveMetadata first{safetensors_format_metadata(outputs), {}};
  const Checkpoint* source = outputs.source;
  if (source == nullptr) return first;
  const bool are_as_before = tensors_are_as_before(outputs) && !has_stale_packed_metadata(*source);
  std::set<std::pair<std::string, std::string>> contradicted;
  for_each_metadata_entry(
      *source, [&](const std::string& file, const std::string& key, const std::string& text) {
        if (is_metadata_of_format(key) ||
            (!are_as_before && is_tensor_specific_metadata(*source, key, text)))
          return;
        const std::string folder(folder_of_file(file));
        const auto [found, is_new] = first.of[folder].emplace(key, text);
        if (!is_new && found->second != text) contradicted.emplace(folder, key);
      });
  for (const auto& [folder, key] : contradicted) first.of[folder].erase(key);
  return first;
}

std::string new_save_metadata_json(const NewSaveMetadata& first, std::string_view folder,
                                   bool sharded) {
  nlohmann::ordered_json metadata = nlohmann::ordered_json::object();
  if (sharded) metadata = {{"DCP_SHARDING_INFO", "{}"}, {"DCP_VERSION", "1.0"}};
  if (const auto entries = first.of.find(folder); entries != first.of.end()) {
    for (const auto& [key, text] : entries->second) metadata[key] = text;
  }
  metadata["format"] = first.word;
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  header[std::string(kSafetensorsMetadata)] = std::move(metadata);
  return header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

const Checkpoint* source_of(const Outputs& outputs, bool sharded) {
  if (outputs.all_new) return nullptr;
  return source_if_of_writer_format(outputs, sharded ? kHfShardedWriter : kSafetensorsWriter);
}

// A source with only metadata, on which the files of a first save are based.
std::shared_ptr<const ByteSource> metadata_only_source(const NewSaveMetadata& first,
                                                       const std::string& path, bool sharded) {
  std::string text = new_save_metadata_json(first, folder_of_file(path), sharded);
  auto length = static_cast<std::uint64_t>(text.size());
  auto number = std::as_bytes(std::span(&length, 1));
  auto rest = std::as_bytes(std::span(text));
  Bytes bytes(number.begin(), number.end());
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return memory_source(path, std::move(bytes));
}

// A new file copies the metadata of a source file but none of its tensors.
Status drop_unwritten_tensors(const ByteSource& source, SafetensorsChange& change) {
  SHW_TRY(SafetensorsHeader header, read_safetensors_header(source));
  for (const SafetensorsEntry& entry : header.entries) {
    if (!change.written.contains(entry.name)) change.dropped.insert(entry.name);
  }
  return {};
}

Status add_file(const Outputs& outputs, bool sharded, const PlacedTiles& placed,
                const NewSaveMetadata& first, const std::string& path, SafetensorsChange change,
                std::map<std::string, std::uint64_t>& offsets, LaidOut& out) {
  auto added = placed.added.find(path);
  bool is_new = added != placed.added.end();
  std::string from = is_new ? added->second : path;
  std::shared_ptr<const ByteSource> source;
  if (from.empty()) {
    source = metadata_only_source(first, path, sharded);
  } else {
    SHW_TRY(source, source_of(outputs, sharded)->directory()->open(from));
  }
  if (is_new) SHW_CHECK(drop_unwritten_tensors(*source, change));
  SHW_TRY(SafetensorsLayout layout, lay_out_safetensors(*source, change));
  auto file = static_cast<std::uint32_t>(out.files.size());
  out.files.push_back({path, layout.size});
  out.before.push_back({file, 0, std::move(layout.header)});
  for (const SafetensorsLayout::Copy& copy : layout.copies)
    out.copies.push_back({file, copy.offset, from, copy.begin, copy.length});
  offsets = std::move(layout.written);
  return {};
}

// The change of the index: file of every tensor, and the totals.
IndexChange index_change(const Checkpoint& source, const Outputs& outputs,
                         const LaidOut& laid_out) {
  IndexChange change;
  auto count = [&](ExtentsView sizes, Dtype dtype, std::int64_t sign) {
    std::int64_t elements = sign * volume(sizes).value_or(0);
    change.more_elements += elements;
    change.more_bytes += elements * static_cast<std::int64_t>(size_of(dtype));
  };
  for (const OutputTensor& tensor : outputs.tensors) {
    for (const OutputTile& tile : tensor.tiles) {
      count(tile.box.sizes, tensor.dtype, 1);
      change.bytes +=
          volume(tile.box.sizes).value_or(0) * static_cast<std::int64_t>(size_of(tensor.dtype));
      auto place = kept_item_place(outputs, tile);
      if (place) change.homes[tensor.fqn].push_back(source.file(place->file).path);
    }
    if (!tensor.before) continue;
    if (source.fqn(*tensor.before) != tensor.fqn)
      change.renamed.emplace(source.fqn(*tensor.before), tensor.fqn);
    for (ChunkId chunk : source.chunks(*tensor.before))
      count(source.sizes(chunk), source.dtype(*tensor.before), -1);
  }
  for (const WrittenTile& made : laid_out.made)
    change.homes[outputs.tensors[made.tensor].fqn].push_back(laid_out.files[made.file].path);
  return change;
}

// True if all tensors are in the single file that loaders look for without an index, and there are
// no other files. Then an index could only become wrong.
bool needs_no_index(const Directory& directory, const std::string& index,
                    const IndexChange& change) {
  const std::string single = single_file_name(index);
  const bool is_single =
      !change.homes.empty() &&
      std::all_of(change.homes.begin(), change.homes.end(), [&](const auto& home) {
        return home.second == std::vector<std::string>{single};
      });
  auto entries = is_single ? directory.list() : Result<std::vector<Entry>>(std::vector<Entry>());
  return is_single && entries &&
         std::none_of(entries->begin(), entries->end(), [&](const Entry& entry) {
           return is_at_top(entry.path) && entry.path.ends_with(kSafetensorsSuffix) &&
                  entry.path != single;
         });
}

struct NewIndex {
  std::string path, text;  // empty text: the file is deleted
};

// Indexes of a first save: one for each folder with several files.
std::vector<NewIndex> new_save_indexes(const Outputs& outputs, const LaidOut& laid_out) {
  std::vector<NewIndex> indexes;
  const PartLocations homes = part_locations(outputs);
  for (const PartLocation& home : homes.homes) {
    std::string text = new_safetensors_index(outputs, laid_out, homes, home);
    if (!text.empty())
      indexes.push_back({home.folder + home.stem + ".safetensors.index.json", std::move(text)});
  }
  return indexes;
}

Result<std::vector<NewIndex>> new_indexes(const Outputs& outputs, const LaidOut& laid_out,
                                          bool sharded) {
  using Indexes = std::vector<NewIndex>;
  const Checkpoint* followed = source_of(outputs, sharded);
  if (followed == nullptr) return sharded ? Indexes{} : new_save_indexes(outputs, laid_out);
  const Directory& directory = *followed->directory();
  auto path = find_safetensors_index(directory);
  if (!path) return Indexes{};
  SHW_TRY(auto source, directory.open(*path));
  const IndexChange change = index_change(*followed, outputs, laid_out);
  SHW_TRY(auto text, changed_index(*source, change));
  if (text && needs_no_index(directory, *path, change)) text->clear();
  return text ? Indexes{{std::move(*path), std::move(*text)}} : Indexes{};
}

Result<LaidOut> lay_out_files(const Outputs& outputs, bool sharded) {
  SHW_TRY(PlacedTiles placed, place_safetensors(outputs, source_of(outputs, sharded), sharded));
  LaidOut out;
  const bool has_first = std::any_of(placed.added.begin(), placed.added.end(),
                                     [](const auto& added) { return added.second.empty(); });
  const NewSaveMetadata first = has_first ? metadata_of_source(outputs) : NewSaveMetadata();
  std::map<std::string, std::pair<std::uint32_t, std::map<std::string, std::uint64_t>>> files;
  for (const auto& [path, change] : placed.changes) {
    auto& [file, offsets] = files[path];
    file = static_cast<std::uint32_t>(out.files.size());
    SHW_CHECK(add_file(outputs, sharded, placed, first, path, change, offsets, out));
  }
  for (const PlacedTiles::Made& made : placed.made) {
    const OutputTensor& tensor = outputs.tensors[made.tensor];
    const auto& [file, offsets] = files.at(made.path);
    std::uint64_t offset = offsets.at(made.name);
    std::uint64_t length = *bytes_of(tensor, tensor.tiles[made.tile]);
    out.made.push_back({made.tensor, made.tile, file, offset, length, offset, length});
  }
  if (source_of(outputs, sharded) == nullptr) return out;
  SHW_TRY(auto indexes, new_indexes(outputs, out, sharded));
  for (const NewIndex& index : indexes) out.replaced.insert(index.path);
  return out;
}

Result<LaidOut> lay_out_plain(const Outputs& outputs) {
  return lay_out_files(outputs, false);
}
Result<LaidOut> lay_out_sharded(const Outputs& outputs) {
  return lay_out_files(outputs, true);
}

Status write_index(const Outputs& outputs, const LaidOut& laid_out, const CreateFile& create,
                   bool sharded) {
  SHW_TRY(auto indexes, new_indexes(outputs, laid_out, sharded));
  for (const NewIndex& index : indexes) {
    if (index.text.empty()) continue;
    SHW_TRY(auto sink, create(index.path));
    SHW_CHECK(sink->write(std::as_bytes(std::span(index.text.data(), index.text.size()))));
    SHW_CHECK(sink->finish());
  }
  return {};
}

Status seal_plain(Outputs outputs, const LaidOut& laid_out, const CreateFile& create) {
  return write_index(outputs, laid_out, create, false);
}
Status seal_sharded(Outputs outputs, const LaidOut& laid_out, const CreateFile& create) {
  return write_index(outputs, laid_out, create, true);
}

}  // namespace

constexpr FormatWriter kSafetensorsWriter{lay_out_plain, nullptr, seal_plain, false,
                                          widen_safetensors_header};
constexpr FormatWriter kHfShardedWriter{lay_out_sharded, nullptr, seal_sharded, false,
                                        widen_safetensors_header};

}  // namespace shw
