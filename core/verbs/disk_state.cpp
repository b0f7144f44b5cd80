#include "core/verbs/disk_state.h"

#include <algorithm>

#include "core/base/words.h"
#include "core/io/remote/remote_path.h"

namespace shw::verbs {
namespace {

constexpr std::size_t kMostFiles = 20'000;

DiskFile stat_file(const Directory& directory, std::string path) {
  const Entry entry = directory.stat(path);
  const bool is_there = entry.kind != EntryKind::kMissing;
  return {std::move(path), entry.size, entry.modified_ns, entry.changed_ns, is_there};
}

}  // namespace

DiskState disk_state(const Checkpoint& checkpoint) {
  DiskState state;
  const auto& directory = checkpoint.directory();
  if (directory == nullptr || is_remote(directory->name())) return state;
  const std::string index(checkpoint.format().traits.index_file);
  if (!index.empty()) state.push_back(stat_file(*directory, index));
  for (const FileRow& file : checkpoint.files()) {
    if (state.size() == kMostFiles) break;
    if (file.safe) state.push_back(stat_file(*directory, file.path));
  }
  return state;
}

std::string changes_since(const Checkpoint& checkpoint, const DiskState& before) {
  std::vector<std::string> written, removed, added;
  for (const DiskFile& file : before) {
    DiskFile now = stat_file(*checkpoint.directory(), file.path);
    if (now == file) continue;
    (!now.is_there ? removed : !file.is_there ? added : written).push_back(file.path);
  }
  std::string text;
  auto say = [&](const std::vector<std::string>& files, const char* what) {
    if (files.empty()) return;
    text += (text.empty() ? "" : ", ") + plural(files.size(), "file") +
            (files.size() == 1 ? " was " : " were ") + what + " (" + short_list_text(files, 2) +
            ")";
  };
  say(written, "written");
  say(removed, "removed");
  say(added, "added");
  return text;
}

}  // namespace shw::verbs
