// The keys of an Orbax folder and the positions of their values: files, or entries of an OCDBT
// database.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/formats/orbax/ocdbt.h"
#include "core/io/source.h"

namespace shw {

// A directory with an additional virtual file per database node that contains values: small values
// are inside compressed nodes. The file is the decoded node.
class FolderWithNodes final : public Directory {
 public:
  explicit FolderWithNodes(std::shared_ptr<const Directory> folder) : folder_(std::move(folder)) {}
  void add(std::string path, OcdbtNode node) { nodes_.emplace(std::move(path), std::move(node)); }

  const std::string& name() const override { return folder_->name(); }
  Result<std::vector<Entry>> list(std::size_t limit) const override { return folder_->list(limit); }
  Entry stat(const std::string& path) const override;
  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override;

 private:
  std::shared_ptr<const Directory> folder_;
  std::map<std::string, OcdbtNode> nodes_;
};

struct StoredKey {
  std::string key;   // "params.kernel/0.1"
  std::string path;  // relative to the top of the folder
  std::uint64_t offset = 0, length = 0;
};

// Keys of the folder below `item` ("" or "state/"), sorted. Adds the nodes of its database to
// `folder`.
Result<std::vector<StoredKey>> stored_keys(FolderWithNodes& folder, const std::string& item,
                                           std::span<const Entry> entries,
                                           const Progress* progress);

}  // namespace shw
