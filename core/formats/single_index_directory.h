// A view of a directory with only one of its indexes visible: used when the user names an index
// file in a folder that has several.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/formats/common/top_file.h"
#include "core/io/source.h"

namespace shw {

inline constexpr std::string_view kIndexSuffix = ".index.json";

class SingleIndexDirectory final : public Directory {
 public:
  SingleIndexDirectory(std::shared_ptr<const Directory> inner, std::string index)
      : inner_(std::move(inner)), index_(std::move(index)) {}
  const std::string& name() const override { return inner_->name(); }
  Result<std::vector<Entry>> list(std::size_t most) const override {
    SHW_TRY(std::vector<Entry> entries, inner_->list(most));
    std::erase_if(entries, [&](const Entry& entry) { return is_another(entry.path); });
    return entries;
  }
  Entry stat(const std::string& path) const override {
    return is_another(path) ? Entry{path} : inner_->stat(path);
  }
  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
    return inner_->open(path);
  }

 private:
  bool is_another(const std::string& path) const {
    return path != index_ && is_at_top(path) && path.ends_with(kIndexSuffix);
  }

  std::shared_ptr<const Directory> inner_;
  std::string index_;
};

}  // namespace shw
