#include "core/formats/dcp/dcp_formats.h"

#include <algorithm>

#include "core/base/words.h"
#include "core/formats/common/codecs.h"
#include "core/formats/dcp/dcp_read.h"

namespace shw {
namespace {

std::string file_of_rank(std::uint32_t rank) {
  return "__" + std::to_string(rank) + "_0.distcp";
}

constexpr FormatTraits kOneIndex = {
    .has_index = true,
    .one_index_file = true,
    .index_file = kDcpMetadataName,
    .writer_of_file = rank_in_distcp_name,
    .data_suffix = ".distcp",
    .records_every_item = true,
};

constexpr FormatTraits stock_traits() {
  FormatTraits traits = kOneIndex;
  traits.index_comes_last = true;
  traits.file_of_rank = file_of_rank;
  return traits;
}

// Replicas of other ranks are in the files and passed over by merging.
constexpr FormatTraits rank_local_traits() {
  FormatTraits traits = kOneIndex;
  traits.one_index_file = traits.records_every_item = false;
  traits.index_file = "__0.metadata";
  traits.index_of_rank = rank_local_name;
  return traits;
}

bool has_metadata(const DirectoryLook& look) {
  return look.entry(kDcpMetadataName).kind != EntryKind::kMissing;
}
Result<bool> recognises_dcp(const DirectoryLook& look) {
  return has_metadata(look);
}
Result<bool> recognises_megatron(const DirectoryLook& look) {
  return has_metadata(look) && look.entry("metadata.json").kind == EntryKind::kFile;
}
Result<bool> recognises_rank_local(const DirectoryLook& look) {
  SHW_TRY(auto entries, look.entries());
  return !rank_local_metadata(entries).empty();
}

OpenedCheckpoint open_one(std::shared_ptr<const Directory> directory, Progress* progress,
                          const Format& format) {
  std::string path(kDcpMetadataName);
  switch (directory->stat(path).kind) {
    case EntryKind::kDirectory:
      return fail(ErrorKind::kDamaged, "is a directory where torch's metadata file is expected",
                  {path});
    case EntryKind::kDanglingLink:
      return fail(ErrorKind::kIo, "is a link to something that is not there", {path},
                  "Was the checkpoint stitched together with links, and the original moved?");
    case EntryKind::kOther:
      return fail(ErrorKind::kDamaged, "is no regular file", {path});
    case EntryKind::kFile:
    case EntryKind::kMissing:
      break;
  }
  return read_dcp(std::move(directory), progress, {.format = &format});
}
OpenedCheckpoint open_dcp(std::shared_ptr<const Directory> directory, Progress* progress) {
  return open_one(std::move(directory), progress, kDcpFormat);
}
OpenedCheckpoint open_megatron(std::shared_ptr<const Directory> directory, Progress* progress) {
  return open_one(std::move(directory), progress, kMegatronFormat);
}
OpenedCheckpoint open_rank_local(std::shared_ptr<const Directory> directory, Progress* progress) {
  SHW_TRY(auto entries, directory->list());
  return read_dcp_rank_local(std::move(directory), rank_local_metadata(entries), progress);
}

NamedFile named_metadata(std::string_view file) {
  return file == kDcpMetadataName ? NamedFile::kCheckpoint : NamedFile::kNothing;
}
NamedFile named_rank_local(std::string_view file) {
  bool one_of_them = file.starts_with("__") && file.ends_with(kDcpMetadataName);
  return one_of_them ? NamedFile::kCheckpoint : NamedFile::kNothing;
}

std::optional<Error> unfinished_save(std::span<const Entry> entries) {
  auto any = [&](auto matches) { return std::any_of(entries.begin(), entries.end(), matches); };
  if (any([](const Entry& entry) { return entry.path == ".metadata.tmp"; }))
    return Error{ErrorKind::kDamaged,
                 "has .metadata.tmp but no .metadata: the save did not finish",
                 {".metadata.tmp"},
                 "If every rank had written its files, .metadata.tmp may be whole: copy the "
                 "checkpoint, rename it to .metadata there and open that."};
  if (any([](const Entry& entry) { return entry.path.ends_with(".distcp"); }))
    return Error{ErrorKind::kDamaged,
                 "has data files (.distcp) but no .metadata",
                 {std::string(kDcpMetadataName)},
                 "The save did not finish, or .metadata lies on another node: rank 0 writes it "
                 "last, on its own disk. The metadata of an earlier step of the same run "
                 "describes the same layout."};
  return std::nullopt;
}

}  // namespace

std::optional<std::uint32_t> rank_in_distcp_name(std::string_view path) {
  path = path.substr(path.rfind('/') + 1);
  std::size_t start = path.ends_with(".distcp") ? path.rfind("__") : std::string_view::npos;
  if (start == std::string_view::npos) return std::nullopt;
  path.remove_prefix(start + 2);
  auto rank = take_number(path);
  if (!rank || !path.starts_with("_")) return std::nullopt;
  path.remove_prefix(1);
  return take_number(path) && path == ".distcp" ? rank : std::nullopt;
}

std::string rank_local_name(std::uint32_t rank) {
  return "__" + std::to_string(rank) + std::string(kDcpMetadataName);
}

std::vector<std::uint32_t> rank_local_metadata(std::span<const Entry> entries) {
  std::vector<std::uint32_t> ranks;
  for (const Entry& entry : entries) {
    std::string_view name = entry.path;
    if (!name.starts_with("__")) continue;
    name.remove_prefix(2);
    // "__007.metadata" is not torch's: the name must be made again from the number.
    if (auto rank = take_number(name); rank && rank_local_name(*rank) == entry.path)
      ranks.push_back(*rank);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

constexpr Format kDcpFormat = {
    "dcp", "DCP", &kTorchZipCodec, Rewrite::kIndex, stock_traits(),
};
constexpr Format kDcpRankLocalFormat = {
    "dcp-rank-local", "DCP, one metadata a rank", &kTorchZipCodec,
    Rewrite::kIndex,  rank_local_traits(),
};
constexpr Format kMegatronFormat = {
    "megatron-dist", "Megatron torch_dist", &kTorchZipCodec, Rewrite::kIndex, kOneIndex,
};

constexpr FormatRow kMegatronRow = {
    &kMegatronFormat,
    kDcpMetadataName,
    recognises_megatron,
    open_megatron,
};
constexpr FormatRow kDcpRow = {
    &kDcpFormat,    kDcpMetadataName, recognises_dcp, open_dcp,
    named_metadata, unfinished_save,  &kDcpWriter,
};
constexpr FormatRow kDcpRankLocalRow = {
    &kDcpRankLocalFormat, kDcpMetadataName, recognises_rank_local,
    open_rank_local,      named_rank_local,
};

}  // namespace shw
