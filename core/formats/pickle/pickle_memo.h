// The memo of a pickle: values that are stored by number for later references.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/formats/pickle/pickle_tree.h"

namespace shw {

// Memo index to node. Python numbers densely, but a shortcut leaves most numbers unused: pages of
// 1024, made when first written.
class PickleMemo {
 public:
  static constexpr std::uint32_t kPage = 1024;

  NodeId get(std::uint64_t index) const {
    std::uint64_t page = index / kPage;
    if (page >= pages_.size() || pages_[page] == nullptr) return NodeId::kAbsent;
    return pages_[page][index % kPage];
  }
  void put(std::uint64_t index, NodeId node) {
    std::uint64_t page = index / kPage;
    if (page >= pages_.size()) pages_.resize(page + 1);
    if (pages_[page] == nullptr) {
      pages_[page] = std::make_unique<NodeId[]>(kPage);
      std::fill_n(pages_[page].get(), kPage, NodeId::kAbsent);
    }
    NodeId& slot = pages_[page][index % kPage];
    if (slot == NodeId::kAbsent) ++length_;
    slot = node;
  }
  // The number that MEMOIZE uses next: CPython counts the entries instead of looking at their
  // numbers.
  std::uint64_t length() const { return length_; }
  void skip(std::uint64_t count) { length_ += count; }
  // Sets the node of a memo index that skip() passed over.
  void fill(std::uint64_t index, NodeId node) {
    put(index, node);
    --length_;
  }

 private:
  std::vector<std::unique_ptr<NodeId[]>> pages_;
  std::uint64_t length_ = 0;
};

}  // namespace shw
