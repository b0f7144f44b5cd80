#include "core/formats/torch_file/torch_zip.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/little_endian.h"
#include "core/base/words.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/magic.h"
#include "core/formats/common/not_examined_finding.h"
#include "core/formats/common/top_file.h"
#include "core/formats/joined_folders.h"
#include "core/formats/open_nested.h"
#include "core/formats/single_file_directory.h"
#include "core/formats/torch_file/open_state.h"
#include "core/formats/torch_file/torch_file_choice.h"
#include "core/formats/zip/zip_directory.h"
#include "core/model/builder.h"

namespace shw {
namespace {

constexpr Format kTorchZipFormat = {
    .name = "torch-zip", .title = "zip archive of torch.save files", .codec = &kRawCodec};
constexpr std::size_t kMaxTorchFiles = 256;

// What stable-baselines3 writes where it has no other variables: torch.save(None).
bool contains_only_none(const Directory& inside, const std::string& path) {
  auto state = open_state(inside, path);
  return state && state->tree.kind(state->tree.root()) == NodeKind::kNone;
}

// The files of torch.save in it, of an archive that is none itself.
std::vector<std::string> torch_files_in(const Directory& inside) {
  std::vector<std::string> files;
  auto entries = inside.list();
  if (!entries) return files;
  const DirectoryContents look(inside);
  for (const Entry& entry : *entries) {
    if (torch_file_role(entry.path) != FileRole::kSingleFile) continue;
    auto is_archive = is_torch_archive(look, entry.path);
    if (is_archive && *is_archive && !contains_only_none(inside, entry.path))
      files.push_back(entry.path);
    if (files.size() > kMaxTorchFiles) return {};
  }
  return files;
}

struct TorchZip {
  std::shared_ptr<const Directory> inside;
  std::vector<std::string> files;
};

Result<TorchZip> torch_zip_of(const Directory& directory, const std::string& path) {
  SHW_TRY(auto source, directory.open(path));
  TorchZip zip;
  SHW_TRY(zip.inside, open_zip_directory(source, directory.name() + "/" + path));
  zip.files = torch_files_in(*zip.inside);
  return zip;
}

// The only one at the top.
Result<std::optional<std::string>> torch_zip_in(const DirectoryContents& look) {
  SHW_TRY(auto entries, look.entries());
  std::optional<std::string> found;
  for (const Entry& entry : entries) {
    const bool is_named = entries.size() == 1 || entry.path.ends_with(".zip");
    if (!is_top_file(entry) || !is_named) continue;
    SHW_TRY(Bytes first, look.first_bytes(entry.path, sizeof(std::uint32_t)));
    const bool is_zip =
        first.size() == sizeof(std::uint32_t) && load_little<std::uint32_t>(first) == kZipMagic;
    if (!is_zip) continue;
    auto zip = torch_zip_of(look.directory(), entry.path);
    if (!zip || zip->files.empty()) continue;
    if (found) return std::optional<std::string>();
    found = entry.path;
  }
  return found;
}

Result<bool> has_torch_zip(const DirectoryContents& look) {
  SHW_TRY(auto path, torch_zip_in(look));
  return path.has_value();
}

}  // namespace

OpenedCheckpoint open_torch_zip(std::shared_ptr<const Directory> directory, Progress* progress) {
  SHW_TRY(auto path, torch_zip_in(DirectoryContents(*directory)));
  if (!path)
    return fail(ErrorKind::kUnsupported, "holds no zip archive of torch.save files",
                {directory->name()});
  SHW_TRY(TorchZip zip, torch_zip_of(*directory, *path));
  std::vector<JoinedPart> parts;
  std::vector<std::string> aside;
  std::optional<Error> first;
  for (const std::string& file : zip.files) {
    auto opened = open_nested(std::make_shared<SingleFileDirectory>(zip.inside, file), progress);
    if (opened) {
      const std::string stem = file.substr(0, file.rfind('.'));
      parts.push_back({std::move(*opened), "", stem + "."});
      continue;
    }
    const bool holds_none = opened.error().kind == ErrorKind::kUnsupported;
    if (!holds_none) return opened;
    aside.push_back(file);
    if (!first) first = std::move(opened).error();
  }
  if (parts.empty()) return tl::unexpected<Error>(std::move(*first));
  SHW_TRY(auto joined, join_folders(zip.inside, parts));
  if (aside.empty()) return joined;
  std::string cause = fmt::format("{} of {} {} no readable tensors.", short_list_text(aside), *path,
                                  aside.size() == 1 ? "holds" : "hold");
  return CheckpointBuilder::with_finding(*joined, not_examined_finding(std::move(aside), cause));
}

constexpr FormatRow kTorchZipRow = {
    .format = &kTorchZipFormat,
    .sign = ".zip",
    .recognises = has_torch_zip,
    .open = open_torch_zip,
    .names_are_common = true,
};

}  // namespace shw
