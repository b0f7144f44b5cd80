#include "core/repair/run/files_to_copy.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "core/facts/storage/integrity.h"
#include "core/formats/common/companion_names.h"
#include "core/formats/common/top_file.h"
#include "core/formats/table.h"
#include "core/io/permissions.h"
#include "core/repair/run/carry_out.h"
#include "core/repair/run/lost.h"

namespace shw {
namespace {

std::string_view folder_of(std::string_view path) {
  return path.substr(0, path.rfind('/') + 1);
}

// "model.safetensors.index.json", also with a variant: "model.safetensors.index.fp16.json". It
// lists files that the result does not have.
bool is_index_of_weights(std::string_view path) {
  return path.ends_with(".json") &&
         (path.find(".safetensors.index.") != std::string_view::npos ||
          path.find(".bin.index.") != std::string_view::npos || path.ends_with(".index.json"));
}

// True for a file next to the source's data that neither belongs to it nor was created by us.
bool is_unrelated_file(const Checkpoint& source, const Entry& entry) {
  const bool is_ours = entry.path == kCertificateFile || entry.path == kLostFile ||
                       entry.path.find(kOwnFileMarker) != std::string::npos ||
                       entry.path == kIntegrityFile ||  // its hashes are of the old bytes
                       entry.path == source.format().traits.index_file ||
                       is_index_of_weights(entry.path);
  return !is_ours && entry.kind == EntryKind::kFile;
}

// True for weights of the same format that are not part of the source: copied, they would make the
// result ambiguous. In a subfolder they are a separate checkpoint, except for formats whose file
// names other formats use too.
bool would_be_ambiguous(const Format& format, const std::string& path) {
  auto rows = formats();
  return std::any_of(rows.begin(), rows.end(), [&](const FormatRow& row) {
    return row.format == &format && row.named != nullptr &&
           row.named(path) == FileRole::kSingleFile && (row.names_are_common || is_at_top(path));
  });
}

// True for the same weights in the file of another library: it would not match the changed result.
bool is_weights_of_another_library(const Format& format, const std::string& path) {
  constexpr auto kStems = std::to_array<std::string_view>(
      {"pytorch_model", "model", "adapter_model", "diffusion_pytorch_model", "pytorch_lora_weights",
       "consolidated", "tf_model", "flax_model", "rust_model", "open_clip_pytorch_model",
       "open_clip_model"});
  constexpr auto kEndings = std::to_array<std::string_view>(
      {".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".npz", ".ot"});
  if (!format.traits.has_one_piece_per_tensor || !is_at_top(path)) return false;
  if (path.ends_with(".gguf")) return true;
  const std::string_view stem = std::string_view(path).substr(0, path.find_first_of(".-"));
  return std::find(kStems.begin(), kStems.end(), stem) != kStems.end() &&
         std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view ending) { return path.ends_with(ending); });
}

// True for "shard-*-model-*.safetensors" in a subfolder: the per-rank shards from which torch's
// HuggingFaceStorageWriter made the files at the top. They are not copied, because they still
// contain the unrepaired weights.
bool is_shard_of_source(const Format& format, std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return format.traits.has_one_piece_per_tensor && name.size() != path.size() &&
         name.starts_with("shard-") && name.find("-model-") != name.npos &&
         name.ends_with(".safetensors");
}

// Subfolders that contain weights. Their other files (configs, tokenizers) belong to those weights.
std::set<std::string, std::less<>> folders_with_weights(const Checkpoint& source) {
  std::set<std::string, std::less<>> folders;
  for (const FileRow& row : source.files()) {
    if (row.referenced) folders.emplace(folder_of(row.path));
  }
  return folders;
}

// True for formats with an index, whose loaders ignore other file names.
bool has_index(const FormatWriter* writer) {
  auto rows = formats();
  return std::any_of(rows.begin(), rows.end(), [&](const FormatRow& row) {
    return row.format->writer == writer && row.format->traits.has_index;
  });
}

struct CompanionFileFilter {
  const Checkpoint& source;
  bool stays = false;         // true: the format stays
  bool weights_only = false;  // Plan::weights_only
  // The result has folders like the source, or a conversion back will make them.
  bool has_parts = false;
  std::set<std::string, std::less<>> with_weights = {};

  bool is_companion(const std::string& path) const {
    if (!is_model_companion(path)) return false;
    if (is_part_list_file(path)) return has_parts;
    const std::string_view folder = folder_of(path);
    return folder.empty() || has_parts || !with_weights.contains(folder);
  }
  bool is_not_copied(const std::string& path) const {
    if (!stays) return !is_companion(path);
    if (would_be_ambiguous(source.format(), path) ||
        is_weights_of_another_library(source.format(), path) ||
        is_shard_of_source(source.format(), path))
      return true;
    return weights_only && !is_companion(path);
  }
};

// Data files that the result still uses, and those of replicas.
std::set<std::string> files_needed(const Checkpoint& source, const Outputs& outputs) {
  std::set<std::string> needed;
  FileId last = FileId::kNone;
  auto need = [&](const std::optional<ItemPlace>& place) {
    if (!place || place->file == last) return;
    last = place->file;
    needed.insert(source.file(place->file).path);
  };
  for (const OutputTensor& tensor : outputs.tensors) {
    for (const OutputTile& tile : tensor.tiles) need(kept_item_place(outputs, tile));
  }
  for (const OutputObject& object : outputs.objects) need(object.place);
  for (const OutputUnclaimedRecord& unclaimed : outputs.unclaimed_records) need(unclaimed.place);
  // Replicas of a tile by other ranks have not been compared, so they are kept.
  for (std::uint32_t chunk = 0; chunk < source.chunk_count(); ++chunk) {
    for (const Replica& replica : source.replicas(ChunkId{chunk}))
      need(source.place(replica.storage));
  }
  return needed;
}

}  // namespace

std::vector<std::string> add_files_to_copy(const Checkpoint& source, FolderRun& run) {
  std::vector<std::string> left_out;
  // A format without an index needs all its files.
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
                entry.path.find(kOwnFileMarker) != std::string::npos ||
                entry.path == kIntegrityFile;  // its hashes are of the old bytes and would fail
    bool dropped = drops_files && referenced.contains(entry.path) && !needed.contains(entry.path);
    if (ours || dropped || anew.contains(entry.path)) continue;
    if (entry.kind != EntryKind::kFile) continue;
    // The link's target is outside the checkpoint and may have stricter permissions than the
    // result.
    if (!referenced.contains(entry.path) && points_outside(source.directory()->name(), entry.path))
      left_out.push_back(entry.path + ", a link that points outside the checkpoint");
    else
      run.copied.push_back(entry);
  }
  return left_out;
}

std::vector<std::string> add_companions_to_copy(const Checkpoint& source, bool weights_only,
                                                FolderRun& run) {
  CompanionFileFilter choosing{source, run.writer == source.format().writer, weights_only};
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
    if (input != 0 || taken.contains(entry.path) || !is_unrelated_file(source, entry)) continue;
    // Data of another save or an empty file: not part of this checkpoint.
    const bool is_data = !choosing.stays && !data.empty() && entry.path.ends_with(data);
    if (choosing.is_not_copied(entry.path)) {
      if (!is_data) left.push_back(entry.path);
    } else if (points_outside(source.directory()->name(), entry.path)) {
      left.push_back(entry.path + ", a link that points outside the checkpoint");
    } else {
      run.copied.push_back(entry);
    }
  }
  return left;
}

}  // namespace shw
