#include "core/learn/fold_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/learn/fold_group.h"
#include "core/learn/row_conflicts.h"

namespace shw {
namespace {

// Limit: a map lists at most 256 patterns of omitted tensors, and at most 256 copies.
constexpr std::size_t kMaxListedPatterns = 250;
// Limit on the rows of a map file.
constexpr std::size_t kMaxFoldedRows = 10'000;

std::string grouping_key_of_row(const LearnSide& from, const LearnSide& to, const FoundRow& row) {
  std::string key;
  for (std::size_t t : row.to) key += to.patterns[t].key + "\n";
  for (std::size_t f : row.from.front()) key += from.patterns[f].key + "\n";
  for (const BoundOp& op : row.ops)
    key += fmt::format("{} {} {} {} {} {} {} {} {} {}\n", name(op.kind), op.dim, op.pieces,
                       to_text(op.parts), to_text(op.view), to_text(op.order), op.size, op.to,
                       name(op.dtype), op.value);
  return key + std::to_string(row.lead.size());
}

CounterPattern name_as_pattern(const LearnSide& side, std::size_t tensor) {
  return side.patterns[tensor];
}

class RowFolder {
 public:
  RowFolder(const LearnSide& from, const LearnSide& to, const LearnedRows& learned)
      : from_(from), to_(to), learned_(learned) {}

  FoldedMap fold() {
    std::map<std::string, std::size_t> places;
    std::vector<std::vector<std::size_t>> groups;
    for (std::size_t r = 0; r < learned_.rows.size(); ++r) {
      const std::string key = grouping_key_of_row(from_, to_, learned_.rows[r].row);
      auto [at, is_new] = places.try_emplace(key, groups.size());
      if (is_new) groups.emplace_back();
      groups[at->second].push_back(r);
    }
    for (const auto& group : groups) add_group(group);
    order_rows();
    for (const auto& [shift, shift_name] : shifts_.all())
      folded_.map.values[shift_name] = {std::to_string(shift)};
    resolve_row_conflicts(from_, to_, learned_, folded_);
    add_copies(from_, learned_.from_copies, folded_.map.from_copies);
    add_copies(to_, learned_.to_copies, folded_.map.to_copies);
    folded_.map.from_left_out = patterns_of_unmapped_tensors(from_);
    folded_.map.to_left_out = patterns_of_unmapped_tensors(to_);
    return std::move(folded_);
  }

 private:
  void add_group(const std::vector<std::size_t>& group) {
    std::vector<const FoundRow*> rows;
    for (std::size_t r : group) rows.push_back(&learned_.rows[r].row);
    if (auto row = fold_group(from_, to_, rows, shifts_)) {
      folded_.map.rows.push_back(std::move(*row));
      folded_.learned.push_back(group);
      return;
    }
    for (std::size_t r : group) add_alone(r);
  }
  void add_alone(std::size_t r) {
    const FoundRow* row = &learned_.rows[r].row;
    auto made = fold_group(from_, to_, {&row, 1}, shifts_);
    if (!made || folded_.map.rows.size() >= kMaxFoldedRows) {
      folded_.inexpressible_rows.push_back(r);
      return;
    }
    folded_.map.rows.push_back(std::move(*made));
    folded_.learned.push_back({r});
  }

  // Sorts rows with fewer names first, because the first row that fits a name counts.
  void order_rows() {
    std::vector<std::size_t> order(folded_.map.rows.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    auto names = [&](std::size_t i) {
      std::size_t count = 0;
      for (std::size_t r : folded_.learned[i]) count += learned_.rows[r].row.from.size();
      return count;
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return names(a) < names(b); });
    FoldedMap sorted;
    for (std::size_t i : order) {
      sorted.map.rows.push_back(std::move(folded_.map.rows[i]));
      sorted.learned.push_back(std::move(folded_.learned[i]));
    }
    folded_.map.rows = std::move(sorted.map.rows);
    folded_.learned = std::move(sorted.learned);
  }

  static void add_copies(const LearnSide& side,
                         const std::vector<std::pair<std::size_t, std::size_t>>& copies,
                         std::vector<MapCopy>& out) {
    for (const auto& [copy, of] : copies) {
      if (out.size() == kMaxListedPatterns) return;
      out.push_back({name_as_pattern(side, copy), name_as_pattern(side, of)});
    }
  }
  // Rows are matched first, so a pattern for omitted tensors affects no others.
  static std::vector<std::string> patterns_of_unmapped_tensors(const LearnSide& side) {
    std::set<std::string> patterns;
    for (std::size_t i = 0; i < side.size(); ++i) {
      if (side.explained[i]) continue;
      std::string pattern;
      for (char c : side.patterns[i].text.empty() ? side.names[i] : side.patterns[i].key)
        pattern += c == '#' ? '*' : (c == '[' || c == ']' || c == '\\' ? '?' : c);
      patterns.insert(std::move(pattern));
    }
    if (patterns.size() > kMaxListedPatterns) return {"*"};
    return {patterns.begin(), patterns.end()};
  }

  const LearnSide& from_;
  const LearnSide& to_;
  const LearnedRows& learned_;
  CounterShifts shifts_;
  FoldedMap folded_;
};

}  // namespace

FoldedMap fold_rows(const LearnSide& from, const LearnSide& to, const LearnedRows& learned) {
  return RowFolder(from, to, learned).fold();
}

}  // namespace shw
