#include "core/formats/open.h"

#include <algorithm>
#include <array>
#include <map>

#include "core/formats/dcp/dcp_read.h"
#include "core/formats/safetensors/safetensors.h"

namespace shw {
namespace {

using Opened = Result<std::shared_ptr<const Checkpoint>>;
using Entries = std::vector<Entry>;

// One file of a directory, alone: what a person means who names a .safetensors file.
class OneFile final : public Directory {
 public:
  OneFile(std::shared_ptr<const Directory> inner, std::string file)
      : inner_(std::move(inner)), file_(std::move(file)) {}
  const std::string& name() const override { return inner_->name(); }
  Result<Entries> list(std::size_t) const override { return Entries{inner_->stat(file_)}; }
  Entry stat(const std::string& path) const override {
    return path == file_ ? inner_->stat(path) : Entry{path};
  }
  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
    return inner_->open(path);
  }

 private:
  std::shared_ptr<const Directory> inner_;
  std::string file_;
};

bool any(const Entries& entries, auto matches) {
  return std::any_of(entries.begin(), entries.end(), [&](const Entry& e) {
    std::string_view path = e.path;
    return matches(path, path.substr(path.rfind('/') + 1));
  });
}

bool is_at_top(std::string_view path) {
  return path.find('/') == std::string_view::npos;
}

// Formats that are recognised and not read. The first that matches names it.
struct OtherFormat {
  std::string_view title;
  bool (*matches)(std::string_view path, std::string_view name);
  std::string_view advice;
};

constexpr auto kOtherFormats = std::to_array<OtherFormat>({
    {"an Orbax checkpoint (JAX)",
     [](std::string_view, std::string_view name) {
       return name == "_CHECKPOINT_METADATA" || name == "_METADATA" || name == "manifest.ocdbt";
     },
     ""},
    {"a Megatron checkpoint of the zarr backend, or another zarr store",
     [](std::string_view, std::string_view name) {
       return name == ".zarray" || name == "zarr.json";
     },
     "Megatron converts it: save again with --dist-ckpt-format torch_dist."},
    {"a PaddlePaddle checkpoint (FlexCheckpoint)",
     [](std::string_view path, std::string_view name) {
       return is_at_top(path) && name.ends_with(".metadata") && !name.starts_with("__") &&
              name.size() > 9 && name.front() >= '0' && name.front() <= '9';
     },
     ""},
    {"a DeepSpeed universal checkpoint",
     [](std::string_view path, std::string_view name) {
       return name == "fp32.pt" && path.find("zero/") != std::string_view::npos;
     },
     ""},
    {"a DeepSpeed ZeRO checkpoint",
     [](std::string_view, std::string_view name) {
       return name.starts_with("zero_pp_rank_") || name.starts_with("bf16_zero_pp_rank_") ||
              name.ends_with("model_states.pt");
     },
     "zero_to_fp32.py in it turns it into one state dict."},
    {"a Megatron checkpoint of the legacy format (one file a rank)",
     [](std::string_view, std::string_view name) {
       return name == "model_optim_rng.pt" || name == "model_rng.pt";
     },
     "Megatron converts it: load it there and save with --dist-ckpt-format torch_dist."},
    {"one torch.save file a rank, as verl writes them",
     [](std::string_view, std::string_view name) {
       return name.starts_with("model_world_size_") && name.ends_with(".pt");
     },
     "verl's model_merger turns them into safetensors."},
    {"a Keras checkpoint",
     [](std::string_view, std::string_view name) {
       return name.ends_with(".keras") || name.ends_with(".weights.h5") ||
              name.ends_with(".weights.json");
     },
     ""},
    {"a torch.save file",
     [](std::string_view path, std::string_view name) {
       return is_at_top(path) && (name.ends_with(".pt") || name.ends_with(".pth") ||
                                  name.ends_with(".bin") || name.ends_with(".ckpt"));
     },
     "torch.distributed.checkpoint.format_utils.torch_save_to_dcp turns it into DCP."},
});

// Folders that can be opened, each with what it is: "transformer (safetensors)".
std::vector<std::string> checkpoints_below(const Entries& entries) {
  std::map<std::string, std::string_view> kinds;
  for (const Entry& entry : entries) {
    std::size_t slash = entry.path.rfind('/');
    if (slash == std::string::npos) continue;
    std::string_view name = std::string_view(entry.path).substr(slash + 1);
    std::string folder = entry.path.substr(0, slash);
    if (name == kDcpMetadataName)
      kinds[folder] = "DCP";
    else if (name.ends_with(".safetensors"))
      kinds.try_emplace(folder, "safetensors");
  }
  std::vector<std::string> found;
  for (const auto& [folder, kind] : kinds) found.push_back(folder + " (" + std::string(kind) + ")");
  return found;
}

std::string joined(const std::vector<std::string>& names, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > most) text += ", ...";
  return text;
}

// Nothing in it can be opened: says what it is instead.
tl::unexpected<Error> refuse(const Directory& directory, const Entries& entries) {
  auto unsupported = [&](const std::string& what, std::string_view advice) {
    return fail(ErrorKind::kUnsupported, what, {directory.name()}, std::string(advice));
  };
  if (auto below = checkpoints_below(entries); !below.empty())
    return unsupported((any(entries, [](auto path, auto) { return path == "model_index.json"; })
                            ? "is a pipeline of diffusers: it holds "
                            : "holds ") +
                           std::to_string(below.size()) +
                           (below.size() == 1 ? " checkpoint" : " checkpoints") +
                           " in its folders, and is none itself",
                       "Open one of them by its folder: " + joined(below, 12));
  if (any(entries, [](auto path, auto) { return path == ".metadata.tmp"; }))
    return fail(ErrorKind::kDamaged, "has .metadata.tmp but no .metadata: the save did not finish",
                {".metadata.tmp"},
                "If every rank had written its files, .metadata.tmp may be whole: copy the "
                "checkpoint, rename it to .metadata there and open that.");
  if (any(entries, [](auto, auto name) { return name.ends_with(".distcp"); }))
    return fail(
        ErrorKind::kDamaged, "has data files (.distcp) but no .metadata",
        {std::string(kDcpMetadataName)},
        "The save did not finish, or .metadata lies on another node: rank 0 writes it last, "
        "on its own disk. The metadata of an earlier step of the same run describes the "
        "same layout.");
  for (const OtherFormat& other : kOtherFormats) {
    if (any(entries, other.matches))
      return unsupported("is " + std::string(other.title) + ", which is not read", other.advice);
  }
  if (entries.empty())
    return unsupported("is an empty folder: there is no checkpoint here",
                       "A checkpoint has a .metadata, or files that end in .safetensors.");
  return unsupported(
      "is no checkpoint that Shardwright knows: there is no .metadata and no "
      ".safetensors",
      "");
}

Opened open_entry(std::shared_ptr<const Directory> directory, const Entry& metadata,
                  Progress* progress) {
  switch (metadata.kind) {
    case EntryKind::kDirectory:
      return fail(ErrorKind::kDamaged, "is a directory where torch's metadata file is expected",
                  {metadata.path});
    case EntryKind::kDanglingLink:
      return fail(ErrorKind::kIo, "is a link to something that is not there", {metadata.path},
                  "Was the checkpoint stitched together with links, and the original moved?");
    case EntryKind::kOther:
      return fail(ErrorKind::kDamaged, "is no regular file", {metadata.path});
    case EntryKind::kFile:
    case EntryKind::kMissing:
      break;
  }
  DcpReadOptions options;
  if (directory->stat("metadata.json").kind == EntryKind::kFile)
    options.format = Format::kMegatronDist;
  return read_dcp(std::move(directory), progress, options);
}

std::pair<std::string, std::string> split(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

}  // namespace

Opened open_checkpoint(std::shared_ptr<const Directory> directory, Progress* progress) {
  Entry metadata = directory->stat(std::string(kDcpMetadataName));
  if (metadata.kind != EntryKind::kMissing)
    return open_entry(std::move(directory), metadata, progress);
  SHW_TRY(Entries entries, directory->list());
  if (auto ranks = rank_local_metadata(entries); !ranks.empty())
    return read_dcp_rank_local(std::move(directory), ranks, progress);
  if (any(entries,
          [](auto path, auto) { return is_at_top(path) && path.ends_with(".safetensors"); }))
    return open_safetensors(std::move(directory), progress);
  return refuse(*directory, entries);
}

Opened open_checkpoint(const std::string& path, Progress* progress) {
  auto [parent, name] = split(path);
  bool is_file = false;
  std::shared_ptr<const Directory> around;
  if (auto opened = open_directory(parent); opened && is_safe_relative_path(name)) {
    around = *opened;
    EntryKind kind = around->stat(name).kind;
    is_file = kind == EntryKind::kFile;
    if (kind == EntryKind::kMissing)
      return fail(ErrorKind::kIo, "there is no such file or directory", {path});
  }
  if (!is_file) {
    SHW_TRY(auto directory, open_directory(path));
    return open_checkpoint(std::move(directory), progress);
  }
  if (name == kDcpMetadataName) return open_checkpoint(around, progress);
  if (name.ends_with(".safetensors"))
    return open_safetensors(std::make_shared<OneFile>(around, name), progress);
  if (name.ends_with(".metadata") && name.starts_with("__"))
    return open_checkpoint(around, progress);
  return fail(ErrorKind::kUnsupported,
              "is a file; a checkpoint is a directory, its .metadata, or a .safetensors file",
              {path});
}

}  // namespace shw
