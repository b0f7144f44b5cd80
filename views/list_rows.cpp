#include "views/list_rows.h"

#include <algorithm>

namespace shw {

void ListRows::update(const std::shared_ptr<const ListModel>& list, const FoldSet& folded,
                      const FoldSet& unfolded) {
  if (of_.lock() == list && folded_ == folded.size() && unfolded_ == unfolded.size()) return;
  of_ = list;
  folded_ = folded.size();
  unfolded_ = unfolded.size();
  entries_.clear();
  entry_of_group_.assign(list->groups.size(), 0);
  std::uint32_t row = 0;
  auto add_group = [&](std::uint32_t run, std::uint32_t g) {
    const ListGroup& group = list->groups[g];
    bool is_folded = !group.module.empty() && !folded.empty() && folded.contains(group.module);
    entry_of_group_[g] = static_cast<std::uint32_t>(entries_.size());
    entries_.push_back({row, ListRow::Kind::kModule, run, g, is_folded});
    row += (group.module.empty() ? 0 : 1) + (is_folded ? 0 : group.count);
  };
  if (list->runs.empty()) {
    for (std::uint32_t g = 0; g < list->groups.size(); ++g) add_group(0, g);
  }
  for (std::uint32_t r = 0; r < list->runs.size(); ++r) {
    const ListRun& run = list->runs[r];
    bool is_folded = run.layers > 0 && !unfolded.contains(run.title);
    if (run.layers > 0) {
      auto entry = static_cast<std::uint32_t>(entries_.size());
      entries_.push_back({row++, ListRow::Kind::kRun, r, run.first_group, is_folded});
      for (std::uint32_t g = run.first_group; g < run.first_group + run.groups; ++g)
        entry_of_group_[g] = entry;
    }
    if (is_folded) continue;
    for (std::uint32_t g = run.first_group; g < run.first_group + run.groups; ++g) add_group(r, g);
  }
  size_ = row;
}

ListRow ListRows::at(std::uint32_t row) const {
  auto list = of_.lock();
  auto after = std::upper_bound(entries_.begin(), entries_.end(), row,
                                [](std::uint32_t v, const Entry& e) { return v < e.row; });
  if (list == nullptr || after == entries_.begin()) return {};
  const Entry& entry = *std::prev(after);
  if (entry.kind == ListRow::Kind::kRun)
    return {ListRow::Kind::kRun, entry.run, entry.group, list->groups[entry.group].first,
            entry.folded};
  const ListGroup& group = list->groups[entry.group];
  std::uint32_t inside = row - entry.row;
  if (!group.module.empty() && inside == 0)
    return {ListRow::Kind::kModule, entry.run, entry.group, group.first, entry.folded};
  std::uint32_t head = group.module.empty() ? 0 : 1;
  return {ListRow::Kind::kTensor, entry.run, entry.group, group.first + inside - head, false};
}

std::optional<std::uint32_t> ListRows::row_of(TensorId tensor) const {
  auto list = of_.lock();
  if (list == nullptr || list->groups.empty()) return std::nullopt;
  auto at = static_cast<std::uint32_t>(tensor);
  if (list->order != nullptr) {
    auto found = std::find(list->order->begin(), list->order->end(), at);
    if (found == list->order->end()) return std::nullopt;
    at = static_cast<std::uint32_t>(found - list->order->begin());
  } else if (at >= list->size()) {
    return std::nullopt;
  }
  auto after = std::upper_bound(list->groups.begin(), list->groups.end(), at,
                                [](std::uint32_t v, const ListGroup& g) { return v < g.first; });
  auto g = static_cast<std::size_t>(after - list->groups.begin() - 1);
  const Entry& entry = entries_[entry_of_group_[g]];
  if (entry.kind == ListRow::Kind::kRun || entry.folded) return entry.row;
  return entry.row + (list->groups[g].module.empty() ? 0 : 1) + at - list->groups[g].first;
}

}  // namespace shw
