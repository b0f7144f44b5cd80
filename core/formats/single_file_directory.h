// A directory view with a single file: used when the user names a .safetensors file. `companions`:
// files that it cannot be read without, as far as they are there.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/io/source.h"

namespace shw {

class SingleFileDirectory final : public Directory {
 public:
  SingleFileDirectory(std::shared_ptr<const Directory> inner, std::string file,
                      std::vector<std::string> companions = {})
      : inner_(std::move(inner)), file_(std::move(file)), companions_(std::move(companions)) {}
  const std::string& name() const override { return inner_->name(); }
  Result<std::vector<Entry>> list(std::size_t) const override {
    std::vector<Entry> entries{inner_->stat(file_)};
    for (const std::string& path : companions_) {
      Entry companion = inner_->stat(path);
      if (companion.kind == EntryKind::kFile) entries.push_back(std::move(companion));
    }
    return entries;
  }
  Entry stat(const std::string& path) const override {
    const bool is_here = path == file_ || std::find(companions_.begin(), companions_.end(), path) !=
                                              companions_.end();
    return is_here ? inner_->stat(path) : Entry{path};
  }
  std::shared_ptr<const Directory> with_companions(std::vector<std::string> companions) const {
    return std::make_shared<SingleFileDirectory>(inner_, file_, std::move(companions));
  }
  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
    return inner_->open(path);
  }

 private:
  std::shared_ptr<const Directory> inner_;
  std::string file_;
  std::vector<std::string> companions_;
};

// True if the directory is a SingleFileDirectory: other files in the folder are not visible, which
// does not mean that they are missing.
inline bool is_single_file_directory(const Directory& directory) {
  return dynamic_cast<const SingleFileDirectory*>(&directory) != nullptr;
}

}  // namespace shw
