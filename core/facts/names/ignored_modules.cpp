#include "core/facts/names/ignored_modules.h"

#include <algorithm>

#include "core/base/parse_text.h"

namespace shw {

IgnoredModules::IgnoredModules(const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string_view name = names[i];
    parents_.insert(name.substr(0, name.rfind('.')));
    const auto parts = split_at(name, '.');
    if (parts.size() > kMostParts) continue;
    NodeId node = 0;
    for (const std::string_view part : parts) {
      const auto next = static_cast<NodeId>(name_index_by_node_.size());
      const auto [child, is_new] = children_.try_emplace({node, part}, next);
      if (is_new) name_index_by_node_.emplace_back();
      node = child->second;
    }
    if (!name_index_by_node_[node]) name_index_by_node_[node] = i;
  }
}

std::optional<std::size_t> IgnoredModules::first_in(std::string_view fqn) const {
  std::optional<std::size_t> first;
  const auto parts = split_at(fqn, '.');
  for (std::size_t begin = 0; begin < parts.size(); ++begin) {
    NodeId node = 0;
    for (std::size_t at = begin; at < parts.size(); ++at) {
      const auto child = children_.find({node, parts[at]});
      if (child == children_.end()) break;
      node = child->second;
      const auto found = name_index_by_node_[node];
      if (found) first = std::min(*found, first.value_or(*found));
    }
  }
  return first;
}

}  // namespace shw
