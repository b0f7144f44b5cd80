// A subfolder of a directory as a directory of its own.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/io/source.h"

namespace shw {

class SubfolderDirectory final : public Directory {
 public:
  SubfolderDirectory(std::shared_ptr<const Directory> around, const std::string& folder)
      : around_(std::move(around)),
        prefix_(folder + "/"),
        name_((around_->name() == "/" ? "" : around_->name()) + "/" + folder) {}
  const std::string& name() const override { return name_; }
  Result<std::vector<Entry>> list(std::size_t limit) const override {
    auto all = around_->list(limit);
    if (!all) return all;
    std::vector<Entry> below;
    for (Entry& entry : *all) {
      if (!entry.path.starts_with(prefix_)) continue;
      entry.path.erase(0, prefix_.size());
      below.push_back(std::move(entry));
    }
    return below;
  }
  Entry stat(const std::string& path) const override {
    Entry entry = around_->stat(prefix_ + path);
    entry.path = path;
    return entry;
  }
  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
    return around_->open(prefix_ + path);
  }

 private:
  std::shared_ptr<const Directory> around_;
  std::string prefix_, name_;
};

}  // namespace shw
