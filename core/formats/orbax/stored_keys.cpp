#include "core/formats/orbax/stored_keys.h"

#include <algorithm>

#include "core/formats/subfolder_directory.h"

namespace shw {

Entry FolderWithNodes::stat(const std::string& path) const {
  const auto node = nodes_.find(path);
  if (node == nodes_.end()) return folder_->stat(path);
  Entry entry = folder_->stat(node->second.file);
  entry.path = path;
  entry.size = node->second.decoded;
  entry.disk_bytes = 0;
  return entry;
}

Result<std::shared_ptr<const ByteSource>> FolderWithNodes::open(const std::string& path) const {
  const auto node = nodes_.find(path);
  if (node == nodes_.end()) return folder_->open(path);
  SHW_TRY(auto source, folder_->open(node->second.file));
  SHW_TRY(Bytes body, read_ocdbt_node(*source, node->second));
  return memory_source(path, std::move(body));
}

Result<std::vector<StoredKey>> stored_keys(FolderWithNodes& folder, const std::string& item,
                                           std::span<const Entry> entries,
                                           const Progress* progress) {
  std::vector<StoredKey> keys;
  const bool has_database = std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) {
    return entry.path.size() == item.size() + kOcdbtManifest.size() &&
           entry.path.starts_with(item) && entry.path.ends_with(kOcdbtManifest);
  });
  if (!has_database) {
    for (const Entry& entry : entries) {
      if (entry.kind == EntryKind::kFile && entry.path.starts_with(item))
        keys.push_back({entry.path.substr(item.size()), entry.path, 0, entry.size});
    }
    return keys;
  }
  std::shared_ptr<const Directory> below;
  if (!item.empty())
    below = std::make_shared<SubfolderDirectory>(
        std::shared_ptr<const Directory>(std::shared_ptr<void>(), &folder),
        item.substr(0, item.size() - 1));
  SHW_TRY(OcdbtDatabase database, read_ocdbt(below != nullptr ? *below : folder, progress));
  for (OcdbtValue& value : database.values)
    keys.push_back({std::move(value.key), item + value.file, value.offset, value.length});
  for (auto& [name, node] : database.nodes) {
    node.file = item + node.file;
    folder.add(item + name, std::move(node));
  }
  return keys;
}

}  // namespace shw
