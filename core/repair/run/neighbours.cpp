#include "core/repair/run/neighbours.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "core/facts/storage/integrity.h"
#include "core/formats/common/companion_names.h"
#include "core/formats/common/top_file.h"
#include "core/formats/table.h"
#include "core/io/rights.h"
#include "core/repair/run/carry_out.h"
#include "core/repair/run/lost.h"

namespace shw {
namespace {

std::string_view folder_of(std::string_view path) {
  return path.substr(0, path.rfind('/') + 1);
}

// "model.safetensors.index.json", and with a variant "model.safetensors.index.fp16.json": it names
// files that the result does not have.
bool is_index_of_weights(std::string_view path) {
  return path.ends_with(".json") &&
         (path.find(".safetensors.index.") != std::string_view::npos ||
          path.find(".bin.index.") != std::string_view::npos || path.ends_with(".index.json"));
}

// Whether it lies beside the data of the source, and is none of it and none of ours.
bool is_neighbour(const Checkpoint& source, const Entry& entry) {
  const bool is_ours = entry.path == kCertificateFile || entry.path == kLostFile ||
                       entry.path.find(kOurMark) != std::string::npos ||
                       entry.path == kIntegrityFile ||  // of other bytes
                       entry.path == source.format().traits.index_file ||
                       is_index_of_weights(entry.path);
  return !is_ours && entry.kind == EntryKind::kFile;
}

// Weights of the same format that were not opened with these: beside the result they make a folder
// of several checkpoints, of which nothing says which is meant. In a folder below they are another
// checkpoint, but for formats that are told by names that others have too.
bool would_compete(const Format& format, const std::string& path) {
  auto rows = formats();
  return std::any_of(rows.begin(), rows.end(), [&](const FormatRow& row) {
    return row.format == &format && row.named != nullptr && row.named(path) == NamedFile::kAlone &&
           (row.names_are_common || is_at_top(path));
  });
}

// The same weights as another program looks for them: what becomes of these does not become of
// those.
bool is_weights_of_others(const Format& format, const std::string& path) {
  constexpr auto kStems = std::to_array<std::string_view>(
      {"pytorch_model", "model", "adapter_model", "diffusion_pytorch_model", "pytorch_lora_weights",
       "consolidated", "tf_model", "flax_model", "rust_model", "open_clip_pytorch_model",
       "open_clip_model"});
  constexpr auto kEndings = std::to_array<std::string_view>(
      {".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".npz", ".ot"});
  if (!format.traits.one_piece || !is_at_top(path)) return false;
  if (path.ends_with(".gguf")) return true;
  const std::string_view stem = std::string_view(path).substr(0, path.find_first_of(".-"));
  return std::find(kStems.begin(), kStems.end(), stem) != kStems.end() &&
         std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view ending) { return path.ends_with(ending); });
}

// Folders below that hold weights: what lies beside those is theirs.
std::set<std::string, std::less<>> folders_with_weights(const Checkpoint& source) {
  std::set<std::string, std::less<>> folders;
  for (const FileRow& row : source.files()) {
    if (row.referenced) folders.emplace(folder_of(row.path));
  }
  return folders;
}

// Names of files and folders mean nothing to loaders of a format with an index.
bool has_index(const FormatWriter* writer) {
  auto rows = formats();
  return std::any_of(rows.begin(), rows.end(), [&](const FormatRow& row) {
    return row.format->writer == writer && row.format->traits.has_index;
  });
}

struct Choosing {
  const Checkpoint& source;
  bool stays = false;         // the format
  bool weights_only = false;  // FolderRun of Plan::weights_only
  bool has_parts = false;     // the result has folders as the source, or can become that again
  std::set<std::string, std::less<>> with_weights = {};

  bool comes_as_companion(const std::string& path) const {
    if (!is_model_companion(path)) return false;
    if (lists_parts(path)) return has_parts;
    const std::string_view folder = folder_of(path);
    return folder.empty() || has_parts || !with_weights.contains(folder);
  }
  bool stays_behind(const std::string& path) const {
    if (!stays) return !comes_as_companion(path);
    if (would_compete(source.format(), path) || is_weights_of_others(source.format(), path))
      return true;
    return weights_only && !comes_as_companion(path);
  }
};

// Data files that are pointed to afterwards, and those of copies.
std::set<std::string> files_needed(const Checkpoint& source, const Outputs& outputs) {
  std::set<std::string> needed;
  FileId last = FileId::kNone;
  auto need = [&](const std::optional<ItemPlace>& place) {
    if (!place || place->file == last) return;
    last = place->file;
    needed.insert(source.file(place->file).path);
  };
  for (const OutputTensor& tensor : outputs.tensors) {
    for (const OutputTile& tile : tensor.tiles) need(kept_place(outputs, tile));
  }
  for (const OutputObject& object : outputs.objects) need(object.place);
  for (const OutputUnclaimedRecord& unclaimed : outputs.unclaimed_records) need(unclaimed.place);
  // Nobody has compared the copies that other ranks saved of a tile: they come along.
  for (std::uint32_t chunk = 0; chunk < source.chunk_count(); ++chunk) {
    for (const Replica& replica : source.replicas(ChunkId{chunk}))
      need(source.place(replica.storage));
  }
  return needed;
}

}  // namespace

std::vector<std::string> choose_files(const Checkpoint& source, FolderRun& run) {
  std::vector<std::string> left_out;
  // Where files themselves say what they hold, none is left out.
  const bool drops_files = source.format().rewrite != Rewrite::kFiles;
  std::set<std::string> needed = files_needed(source, run.outputs), referenced;
  std::set<std::string> anew = run.laid_out.replaced;
  for (const LaidOut::File& file : run.laid_out.files) anew.insert(file.path);
  for (const FileRow& row : source.files()) {
    if (row.referenced) referenced.insert(row.path);
  }
  for (const auto& [input, entry] : run.watched) {
    if (input != 0) continue;
    bool ours = entry.path == kCertificateFile || entry.path == kLostFile ||
                entry.path.find(kOurMark) != std::string::npos ||
                entry.path == kIntegrityFile;  // of other bytes: it would call the result broken
    bool dropped = drops_files && referenced.contains(entry.path) && !needed.contains(entry.path);
    if (ours || dropped || anew.contains(entry.path)) continue;
    if (entry.kind != EntryKind::kFile) continue;
    // What it points to is no part of the checkpoint, and may be for other eyes than its result.
    if (!referenced.contains(entry.path) && leads_outside(source.directory()->name(), entry.path))
      left_out.push_back(entry.path + ", a link out of the checkpoint");
    else
      run.copied.push_back(entry);
  }
  return left_out;
}

std::vector<std::string> choose_neighbours(const Checkpoint& source, bool weights_only,
                                           FolderRun& run) {
  Choosing choosing{source, run.writer == source.format().writer, weights_only};
  choosing.has_parts = has_index(run.writer) ||
                       std::any_of(run.laid_out.files.begin(), run.laid_out.files.end(),
                                   [](const LaidOut::File& file) { return !is_at_top(file.path); });
  choosing.with_weights = folders_with_weights(source);
  std::set<std::string> taken = run.laid_out.replaced;
  for (const LaidOut::File& file : run.laid_out.files) {
    if (choosing.stays) taken.insert(file.path);
  }
  for (const FileRow& row : source.files()) {
    if (row.referenced) taken.insert(row.path);
  }
  const std::string_view data = source.format().traits.data_suffix;
  std::vector<std::string> left;
  for (const auto& [input, entry] : run.watched) {
    if (input != 0 || taken.contains(entry.path) || !is_neighbour(source, entry)) continue;
    // Of another save, or empty: it is none of this checkpoint.
    const bool is_data = !choosing.stays && !data.empty() && entry.path.ends_with(data);
    if (choosing.stays_behind(entry.path)) {
      if (!is_data) left.push_back(entry.path);
    } else if (leads_outside(source.directory()->name(), entry.path)) {
      left.push_back(entry.path + ", a link out of the checkpoint");
    } else {
      run.copied.push_back(entry);
    }
  }
  return left;
}

}  // namespace shw
