// safetensors files laid out: those of the source that change, with the bytes that they keep, and
// new ones. The index follows at the end.
#include "core/formats/safetensors/safetensors_format_writer.h"

#include <algorithm>

#include "core/formats/common/top_file.h"
#include "core/formats/safetensors/safetensors_header.h"
#include "core/formats/safetensors/safetensors_index.h"
#include "core/formats/safetensors/safetensors_names.h"
#include "core/formats/safetensors/safetensors_new.h"
#include "core/formats/safetensors/safetensors_placing.h"

namespace shw {
namespace {

// What torch writes into every file, and Hugging Face's own library asks for.
std::string first_metadata(bool sharded) {
  return sharded
             ? R"({"__metadata__":{"DCP_SHARDING_INFO":"{}","DCP_VERSION":"1.0","format":"pt"}})"
             : R"({"__metadata__":{"format":"pt"}})";
}

const Checkpoint* source_of(const Outputs& outputs, bool sharded) {
  if (outputs.all_new) return nullptr;
  return source_in_form(outputs, sharded ? kHfShardedWriter : kSafetensorsWriter);
}

// A file of the metadata alone: what a first save begins with.
std::shared_ptr<const ByteSource> first_file(const std::string& path, bool sharded) {
  std::string text = first_metadata(sharded);
  auto length = static_cast<std::uint64_t>(text.size());
  auto number = std::as_bytes(std::span(&length, 1));
  auto rest = std::as_bytes(std::span(text));
  Bytes bytes(number.begin(), number.end());
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return memory_source(path, std::move(bytes));
}

// A new file has the metadata of the one it begins as, and none of its tensors.
Status drop_all_others(const ByteSource& source, SafetensorsChange& change) {
  SHW_TRY(SafetensorsHeader header, read_safetensors_header(source));
  for (const SafetensorsEntry& entry : header.entries) {
    if (!change.written.contains(entry.name)) change.dropped.insert(entry.name);
  }
  return {};
}

Status add_file(const Outputs& outputs, bool sharded, const PlacedTiles& placed,
                const std::string& path, SafetensorsChange change,
                std::map<std::string, std::uint64_t>& offsets, LaidOut& out) {
  auto added = placed.added.find(path);
  bool is_new = added != placed.added.end();
  std::string from = is_new ? added->second : path;
  std::shared_ptr<const ByteSource> source;
  if (from.empty()) {
    source = first_file(path, sharded);
  } else {
    SHW_TRY(source, source_of(outputs, sharded)->directory()->open(from));
  }
  if (is_new) SHW_CHECK(drop_all_others(*source, change));
  SHW_TRY(SafetensorsLayout layout, lay_out_safetensors(*source, change));
  auto file = static_cast<std::uint32_t>(out.files.size());
  out.files.push_back({path, layout.size});
  out.before.push_back({file, 0, std::move(layout.header)});
  for (const SafetensorsLayout::Copy& copy : layout.copies)
    out.copies.push_back({file, copy.offset, from, copy.begin, copy.length});
  offsets = std::move(layout.written);
  return {};
}

// Of all tensors, by which the totals of the index move, and where each is.
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
      auto place = kept_place(outputs, tile);
      if (place) change.homes[tensor.fqn].push_back(source.file(place->file).path);
    }
    if (!tensor.before) continue;
    if (source.fqn(*tensor.before) != tensor.fqn)
      change.renamed.emplace(source.fqn(*tensor.before), tensor.fqn);
    for (ChunkId chunk : source.chunks(*tensor.before))
      count(source.sizes(chunk), source.dtype(*tensor.before), -1);
  }
  for (const MadeTile& made : laid_out.made)
    change.homes[outputs.tensors[made.tensor].fqn].push_back(laid_out.files[made.file].path);
  return change;
}

// All of it lies in the one file that loaders look for without an index, and nothing else that an
// index would tell apart from it lies there: the index would only be wrong again.
bool needs_no_index(const Directory& directory, const std::string& index,
                    const IndexChange& change) {
  const std::string single = single_beside(index);
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
  std::string path, text;  // empty: there is none any more
};
Result<std::optional<NewIndex>> new_index(const Outputs& outputs, const LaidOut& laid_out,
                                          bool sharded) {
  using Index = std::optional<NewIndex>;
  const Checkpoint* followed = source_of(outputs, sharded);
  if (followed == nullptr) {
    std::string text = sharded ? std::string() : new_safetensors_index(outputs, laid_out);
    return text.empty()
               ? Index{}
               : NewIndex{stem_of_new(outputs) + ".safetensors.index.json", std::move(text)};
  }
  const Directory& directory = *followed->directory();
  auto path = find_safetensors_index(directory);
  if (!path) return Index{};
  SHW_TRY(auto source, directory.open(*path));
  const IndexChange change = index_change(*followed, outputs, laid_out);
  SHW_TRY(auto text, changed_index(*source, change));
  if (text && needs_no_index(directory, *path, change)) text->clear();
  return text ? Index(NewIndex{std::move(*path), std::move(*text)}) : Index{};
}

Result<LaidOut> lay_out_files(const Outputs& outputs, bool sharded) {
  SHW_TRY(PlacedTiles placed, place_safetensors(outputs, source_of(outputs, sharded), sharded));
  LaidOut out;
  std::map<std::string, std::pair<std::uint32_t, std::map<std::string, std::uint64_t>>> files;
  for (const auto& [path, change] : placed.changes) {
    auto& [file, offsets] = files[path];
    file = static_cast<std::uint32_t>(out.files.size());
    SHW_CHECK(add_file(outputs, sharded, placed, path, change, offsets, out));
  }
  for (const PlacedTiles::Made& made : placed.made) {
    const OutputTensor& tensor = outputs.tensors[made.tensor];
    const auto& [file, offsets] = files.at(made.path);
    std::uint64_t offset = offsets.at(tensor.fqn);
    std::uint64_t length = *bytes_of(tensor, tensor.tiles[made.tile]);
    out.made.push_back({made.tensor, made.tile, file, offset, length, offset, length});
  }
  if (source_of(outputs, sharded) == nullptr) return out;
  SHW_TRY(auto index, new_index(outputs, out, sharded));
  if (index) out.replaced.insert(index->path);
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
  SHW_TRY(auto index, new_index(outputs, laid_out, sharded));
  if (!index || index->text.empty()) return {};
  SHW_TRY(auto sink, create(index->path));
  SHW_CHECK(sink->write(std::as_bytes(std::span(index->text.data(), index->text.size()))));
  return sink->finish();
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
