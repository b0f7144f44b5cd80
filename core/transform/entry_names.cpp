#include "core/transform/entry_names.h"

#include <algorithm>

namespace shw {

void EntryNames::add(NamedKind kind, const std::string& name, std::size_t index) {
  twice_ += by_name_.contains(name) ? 1 : 0;
  by_name_.emplace(name, Place{kind, index});
}

void EntryNames::forget(NamedKind kind, const std::string& name, std::size_t index) {
  auto [first, last] = by_name_.equal_range(name);
  for (auto it = first; it != last; ++it) {
    if (it->second != Place{kind, index}) continue;
    twice_ -= std::next(first) != last ? 1 : 0;
    by_name_.erase(it);
    return;
  }
}

std::optional<std::size_t> EntryNames::find(NamedKind kind, const std::string& name) const {
  std::optional<std::size_t> found;
  auto [first, last] = by_name_.equal_range(name);
  for (auto it = first; it != last; ++it) {
    if (it->second.kind == kind && (!found || it->second.index < *found)) found = it->second.index;
  }
  return found;
}

void EntryNames::mark_removed(NamedKind kind, std::size_t index, ReplacementRange instead) {
  (kind == NamedKind::kTensor ? removed_tensors_ : removed_objects_)[index] = instead;
  moved_ = moved_ || instead.count != 0;
}

std::vector<std::size_t> EntryNames::order(NamedKind kind, std::size_t count) const {
  const ReplacedEntries& gone = this->gone(kind);
  std::vector<bool> is_instead(count, false);
  for (const auto& [index, instead] : gone)
    std::fill_n(is_instead.begin() + static_cast<std::ptrdiff_t>(instead.first), instead.count,
                true);
  std::vector<std::size_t> order, open;  // next one last
  for (std::size_t i = 0; i < count; ++i) {
    if (is_instead[i]) continue;
    for (open.push_back(i); !open.empty();) {
      const std::size_t index = open.back();
      open.pop_back();
      auto found = gone.find(index);
      if (found == gone.end()) {
        order.push_back(index);
        continue;
      }
      for (std::size_t k = found->second.count; k-- > 0;) open.push_back(found->second.first + k);
    }
  }
  return order;
}

}  // namespace shw
