#include "core/formats/safetensors/safetensors_placing.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/formats/common/safetensors_dtypes.h"
#include "core/formats/common/safetensors_header.h"
#include "core/formats/safetensors/safetensors_names.h"
#include "core/formats/safetensors/safetensors_new.h"
#include "core/formats/safetensors_outputs.h"

namespace shw {
namespace {

std::string shard_file(std::uint32_t number, const std::string& rest) {
  return fmt::format("shard-{:05}{}", number, rest);
}

struct TensorFilePlacer {
  const Outputs& outputs;
  bool sharded = false;
  const Checkpoint* source = nullptr;       // null: a first save
  PartLocations homes = {};                 // for a plain first save
  std::vector<std::string> new_files = {};  // for a plain first save: by tensor
  std::vector<std::string> paths = {};      // files with tensors, in the order of the source
  std::set<std::string> everything = {};    // all existing files
  PlacedTiles placed = {};

  // The file of an item; empty if it has none.
  std::string file_of(ChunkId chunk) const {
    auto item = source->item(chunk);
    return item ? source->file(item->file).path : std::string();
  }
  Checkpoint::ChunkRange chunks_before(const OutputTensor& tensor) const {
    bool known = source != nullptr && tensor.before;
    return known ? source->chunks(*tensor.before) : Checkpoint::ChunkRange{};
  }

  // A name like that of the first file, with the first unused number.
  std::string new_path() const {
    const std::string& like = paths.front();
    std::string folder = like.substr(0, like.rfind('/') + 1);
    std::string name = like.substr(folder.size()), rest = "-model-00001-of-00001.safetensors";
    bool is_shard = name.size() > 11 && name.starts_with("shard-") && name[11] == '-';
    if (is_shard) rest = name.substr(11);
    for (std::uint32_t i = 1;; ++i) {
      std::string path = folder + shard_file(i, rest);
      if (!everything.contains(path) && !placed.added.contains(path)) return path;
    }
  }

  std::string file_next_to_source(const OutputTensor& tensor, const OutputTile& tile,
                                  const std::set<std::string>& taken) {
    static const RareOutputTileFields kNothing;
    for (FileId file : (tile.more ? *tile.more : kNothing).made_of) {
      const std::string& path = source->file(file).path;
      if (!taken.contains(path)) return path;
    }
    std::string any;
    std::set<std::string> holders;
    for (ChunkId old : chunks_before(tensor)) holders.insert(file_of(old));
    for (const std::string& path : paths) {
      if (taken.contains(path)) continue;
      if (rank_in_shard_name(path) == tile.writer) return path;
      if (any.empty() || (holders.contains(path) && !holders.contains(any))) any = path;
    }
    for (const auto& [path, like] : placed.added) {
      if (any.empty() && !taken.contains(path)) any = path;
    }
    if (!any.empty()) return any;
    std::string path = new_path();
    placed.added.emplace(path, paths.front());
    return path;
  }

  // In a first save: one file per rank, or as many as needed.
  std::string new_file_of_tile(std::uint32_t t, const OutputTile& tile) {
    std::string path =
        sharded ? shard_file(tile.writer + 1, "-model-00001-of-00001.safetensors") : new_files[t];
    placed.added.emplace(path, std::string());
    return path;
  }

  Status make(std::uint32_t t, std::uint32_t i, std::set<std::string>& taken) {
    const OutputTensor& tensor = outputs.tensors[t];
    const OutputTile& tile = tensor.tiles[i];
    auto length = bytes_of(tensor, tile);
    if (!length)
      return fail(ErrorKind::kUsage, "one of its chunks is invalid",
                  Place{.file = {}, .tensor = tensor.fqn});
    std::string path =
        source != nullptr ? file_next_to_source(tensor, tile, taken) : new_file_of_tile(t, tile);
    if (!taken.insert(path).second)
      return fail(ErrorKind::kUnsupported,
                  "has two chunks in one file, which can store a tensor only once",
                  Place{.file = path, .tensor = tensor.fqn});
    const std::string name = new_files.empty() ? tensor.fqn : name_in_file(tensor, homes.of(t));
    placed.changes[path].written[name] = {std::string(safetensors_dtype_name(tensor.dtype)),
                                          tile.box.sizes, *length};
    if (sharded) placed.changes[path].saved_offsets[name] = tile.box.offsets;
    placed.made.push_back({t, i, std::move(path), name});
    return {};
  }

  Status place_tensor(std::uint32_t t) {
    const OutputTensor& tensor = outputs.tensors[t];
    std::set<std::string> taken;
    std::set<ChunkId> kept;
    for (const OutputTile& tile : tensor.tiles) {
      if (!tile.kept) continue;
      if (source == nullptr)
        return fail(ErrorKind::kUsage, "an item of a different format cannot be copied",
                    Place{.file = {}, .tensor = tensor.fqn});
      if (source->fqn(source->tensor_of(*tile.kept)) != tensor.fqn)
        return fail(ErrorKind::kUnsupported, "its file stores it under a different name",
                    Place{.file = file_of(*tile.kept), .tensor = tensor.fqn});
      kept.insert(*tile.kept);
      std::string path = file_of(*tile.kept);
      taken.insert(path);
      if (sharded && !same(source->offsets(*tile.kept), tile.box.offsets))
        placed.changes[path].saved_offsets[tensor.fqn] = tile.box.offsets;
    }
    for (std::uint32_t i = 0; i < tensor.tiles.size(); ++i) {
      if (!tensor.tiles[i].kept) SHW_CHECK(make(t, i, taken));
    }
    for (ChunkId old : chunks_before(tensor)) {
      const std::string path = file_of(old);
      const std::string name(source->fqn(*tensor.before));
      const bool is_replaced = taken.contains(path) && name == tensor.fqn;
      if (!kept.contains(old) && !path.empty() && !is_replaced)
        placed.changes[path].dropped.insert(name);
    }
    return {};
  }

  // Rewrites files that safetensors rejects because of bytes outside all tensors, without these
  // bytes.
  void drop_unowned() {
    for (const std::string& path : paths) {
      auto file = source->directory()->open(path);
      auto header = file ? read_safetensors_header(**file)
                         : Result<SafetensorsHeader>(tl::unexpected(file.error()));
      if (header && header->has_unowned()) placed.changes[path].removes_unowned_bytes = true;
    }
  }

  // Tensors may exchange names: a name that one drops may be written by the other.
  void keep_rewritten_names() {
    for (auto& [path, change] : placed.changes) {
      std::erase_if(change.dropped, [&written = change.written](const auto& name) {
        return written.contains(name);
      });
    }
  }

  // Records in every changed file which of its tensors contain filled data.
  void note_filled() {
    if (outputs.filled.empty()) return;
    std::set<std::string> filled(outputs.filled.begin(), outputs.filled.end());
    std::map<std::string, std::vector<std::string>> held;
    for (const OutputTensor& tensor : outputs.tensors) {
      if (!filled.contains(tensor.fqn)) continue;
      for (const OutputTile& tile : tensor.tiles) {
        if (tile.kept) held[file_of(*tile.kept)].push_back(tensor.fqn);
      }
    }
    for (const PlacedTiles::Made& made : placed.made) {
      const std::string& fqn = outputs.tensors[made.tensor].fqn;
      if (filled.contains(fqn)) held[made.path].push_back(fqn);
    }
    for (auto& [path, change] : placed.changes) {
      if (auto found = held.find(path); found != held.end())
        change.filled = outputs.filled_text(found->second);
    }
  }
};

}  // namespace

Result<PlacedTiles> place_safetensors(const Outputs& outputs, const Checkpoint* source,
                                      bool sharded) {
  TensorFilePlacer placing{outputs, sharded, source};
  if (placing.source == nullptr) {
    SHW_CHECK(check_safetensors_can_store(outputs, sharded, "safetensors"));
    if (!sharded) {
      placing.homes = part_locations(outputs);
      placing.new_files = split_into_files(outputs, placing.homes);
    }
  } else {
    for (const FileRow& file : placing.source->files()) {
      placing.everything.insert(file.path);
      if (file.referenced && file.path.ends_with(kSafetensorsSuffix))
        placing.paths.push_back(file.path);
    }
    if (placing.paths.empty())
      return fail(ErrorKind::kUnsupported, "holds no file that can be rewritten");
  }
  for (std::uint32_t t = 0; t < outputs.tensors.size(); ++t) SHW_CHECK(placing.place_tensor(t));
  if (placing.source != nullptr) placing.drop_unowned();
  placing.keep_rewritten_names();
  placing.note_filled();
  std::erase_if(placing.placed.changes, [](const auto& change) { return change.second.empty(); });
  return std::move(placing.placed);
}

}  // namespace shw
