#include "core/verbs/disk_state.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_set>

#include "core/base/words.h"
#include "core/formats/single_file_directory.h"
#include "core/io/remote/remote_path.h"
#include "core/io/store.h"

namespace shw::verbs {
namespace {

constexpr std::size_t kMaxFiles = 20'000;

DiskFile stat_file(const Directory& directory, std::string path) {
  const Entry entry = directory.stat(path);
  const bool is_there = entry.kind != EntryKind::kMissing;
  return {std::move(path), entry.size, entry.modified_ns, entry.changed_ns, is_there};
}

std::string_view ending_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == name.npos || dot == 0 ? std::string_view{} : name.substr(dot);
}

// Names in the top folder that look like a part of the checkpoint and are none of `files`.
std::vector<std::string> other_names(const Directory& directory,
                                     const std::vector<DiskFile>& files) {
  if (is_single_file_directory(directory)) return {};
  std::unordered_set<std::string_view> known, endings;
  for (const DiskFile& file : files) {
    known.insert(file.path);
    endings.insert(ending_of(file.path));
  }
  std::vector<std::string> names = posix_store().names(directory.name());
  std::erase_if(names, [&](const std::string& name) {
    const std::string_view ending = ending_of(name);
    return ending.empty() || ending == ".json" || endings.count(ending) == 0 ||
           known.count(name) != 0;
  });
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

DiskState disk_state(const Checkpoint& checkpoint) {
  DiskState state;
  const auto& directory = checkpoint.directory();
  if (directory == nullptr || is_remote(directory->name())) return state;
  const std::string index(checkpoint.format().traits.index_file);
  if (!index.empty()) state.files.push_back(stat_file(*directory, index));
  for (const FileRow& file : checkpoint.files()) {
    if (state.files.size() == kMaxFiles) return state;
    if (file.safe) state.files.push_back(stat_file(*directory, file.path));
  }
  state.others = other_names(*directory, state.files);
  return state;
}

std::string changes_since(const Checkpoint& checkpoint, const DiskState& before) {
  std::vector<std::string> written, removed, added;
  for (const DiskFile& file : before.files) {
    DiskFile now = stat_file(*checkpoint.directory(), file.path);
    if (now == file) continue;
    (!now.is_there ? removed : !file.is_there ? added : written).push_back(file.path);
  }
  if (!before.files.empty() && before.files.size() < kMaxFiles) {
    const auto now = other_names(*checkpoint.directory(), before.files);
    std::set_difference(now.begin(), now.end(), before.others.begin(), before.others.end(),
                        std::back_inserter(added));
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
