#include "core/facts/storage/own_index.h"

#include <algorithm>

namespace shw {

std::set<std::string, std::less<>> folders_with_own_index(const Checkpoint& checkpoint) {
  std::set<std::string, std::less<>> folders;
  const std::string_view index = checkpoint.format().traits.index_file;
  if (index.empty()) return folders;
  for (const FileRow& file : checkpoint.files()) {
    const std::size_t slash = file.path.rfind('/');
    if (file.referenced || file.kind != EntryKind::kFile || slash == std::string::npos) continue;
    if (std::string_view(file.path).substr(slash + 1) == index)
      folders.insert(file.path.substr(0, slash + 1));
  }
  return folders;
}

bool is_in_folder(const std::set<std::string, std::less<>>& folders, std::string_view path) {
  for (std::size_t slash = path.find('/'); slash != std::string_view::npos;
       slash = path.find('/', slash + 1)) {
    if (folders.contains(path.substr(0, slash + 1))) return true;
  }
  return false;
}

}  // namespace shw
