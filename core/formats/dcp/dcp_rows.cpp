#include "core/formats/dcp/dcp_rows.h"

#include <algorithm>
#include <functional>

namespace shw {

std::uint32_t NameTable::intern(std::string_view text) {
  if (texts_.size() * 2 >= slots_.size()) grow();
  std::size_t mask = slots_.size() - 1;
  std::size_t slot = std::hash<std::string_view>{}(text)&mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    if (texts_[slots_[slot] - 1] == text) return slots_[slot] - 1;
  }
  texts_.push_back(text);
  slots_[slot] = size();
  return size() - 1;
}

void NameTable::grow() {
  slots_.assign(std::max<std::size_t>(1024, slots_.size() * 2), 0);
  std::size_t mask = slots_.size() - 1;
  for (std::uint32_t name = 0; name < size(); ++name) {
    std::size_t slot = std::hash<std::string_view>{}(texts_[name]) & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = name + 1;
  }
}

std::vector<std::string> dcp_transforms(const PickleTree& tree, NodeId descriptors) {
  constexpr const char* kUnreadable = "unreadable transform";
  std::vector<std::string> transforms;
  const NodeKind kind = tree.kind(descriptors);
  if (kind == NodeKind::kAbsent || kind == NodeKind::kNone) return transforms;
  if (auto text = tree.text(descriptors)) {
    if (!text->empty()) transforms.emplace_back(text->substr(0, 256));
    return transforms;
  }
  const bool is_row = kind == NodeKind::kTuple || kind == NodeKind::kList ||
                      kind == NodeKind::kDict || kind == NodeKind::kSet;
  if (!is_row) {
    if (tree.integer(descriptors) != 0) transforms.emplace_back(kUnreadable);
    return transforms;
  }
  for (NodeId item : tree.items(descriptors)) {
    if (transforms.size() == 16) break;  // torch has only one
    auto text = tree.text(item);
    transforms.emplace_back(text ? text->substr(0, 256) : kUnreadable);
  }
  return transforms;
}

}  // namespace shw
