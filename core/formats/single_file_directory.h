// A directory view with a single file: used when the user names a .safetensors file. `companion`:
// a file that it cannot be read without, if it is there.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/io/source.h"

namespace shw {

class SingleFileDirectory final : public Directory {
 public:
  SingleFileDirectory(std::shared_ptr<const Directory> inner, std::string file,
                      std::string companion = {})
      : inner_(std::move(inner)), file_(std::move(file)), companion_(std::move(companion)) {}
  const std::string& name() const override { return inner_->name(); }
  Result<std::vector<Entry>> list(std::size_t) const override {
    std::vector<Entry> entries{inner_->stat(file_)};
    Entry companion = stat(companion_);
    if (companion.kind == EntryKind::kFile) entries.push_back(std::move(companion));
    return entries;
  }
  Entry stat(const std::string& path) const override {
    const bool is_here = path == file_ || (!path.empty() && path == companion_);
    return is_here ? inner_->stat(path) : Entry{path};
  }
  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
    return inner_->open(path);
  }

 private:
  std::shared_ptr<const Directory> inner_;
  std::string file_, companion_;
};

// True if the directory is a SingleFileDirectory: other files in the folder are not visible, which
// does not mean that they are missing.
inline bool is_single_file_directory(const Directory& directory) {
  return dynamic_cast<const SingleFileDirectory*>(&directory) != nullptr;
}

}  // namespace shw
