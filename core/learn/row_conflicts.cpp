#include "core/learn/row_conflicts.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/maps/size_expression.h"

namespace shw {
namespace {

// One side of all rows, with the names that patterns are matched against.
struct ConflictSide {
  const LearnSide& side;
  bool is_from = true;
  NumberedNames names = {};

  const std::vector<CounterPattern>& patterns(const MapRow& row) const {
    return is_from ? row.from : row.to;
  }
  std::vector<CounterPattern>& with(MapRow& row) const {
    return is_from ? row.from_with : row.to_with;
  }
};

class RowConflictResolver {
 public:
  RowConflictResolver(const LearnSide& from, const LearnSide& to, const LearnedRows& learned,
                      FoldedMap& folded)
      : from_{from, true}, to_{to, false}, learned_(learned), folded_(folded) {
    for (std::size_t i = 0; i < from.size(); ++i) from_.names.add(from.names[i], i);
    for (std::size_t i = 0; i < to.size(); ++i) to_.names.add(to.names[i], i);
  }

  void run() {
    std::set<std::size_t> from_used, to_used;
    for (std::size_t r = 0; r < folded_.map.rows.size(); ++r) {
      matched_of_other_rows_.clear();
      const bool is_apart =
          make_row_match_own_only(from_, r, from_used) && make_row_match_own_only(to_, r, to_used);
      if (!is_apart && (move_before(r, from_used, to_used) || replace_by_single_tensor_rows(r))) {
        // Continue with the row that was moved here, or with those that replaced this one.
        --r;
        continue;
      }
      collect_tensors_of_row(from_, r, from_used);
      collect_tensors_of_row(to_, r, to_used);
    }
  }

 private:
  LookUpValue value_of() const {
    return [this](std::string_view name) -> std::optional<std::int64_t> {
      auto found = folded_.map.values.find(name);
      if (found == folded_.map.values.end()) return std::nullopt;
      return size_of_expression(found->second.front(), {});
    };
  }

  // Tensors of the row's first name pattern.
  void collect_tensors_of_row(const ConflictSide& side, std::size_t r,
                              std::set<std::size_t>& own) const {
    for (std::size_t i : folded_.learned[r]) {
      const FoundRow& row = learned_.rows[i].row;
      if (side.is_from) {
        for (const auto& cell : row.from) own.insert(cell.begin(), cell.end());
      } else {
        own.insert(row.to.begin(), row.to.end());
      }
    }
  }
  bool is_whole(const ConflictSide& side, const std::vector<CounterPattern>& patterns,
                const Counters& counters) const {
    return std::all_of(patterns.begin(), patterns.end(), [&](const CounterPattern& pattern) {
      const auto name = name_of(pattern, counters, value_of());
      return name && side.names.find(*name);
    });
  }

  // True if the row matches only its own tensors, after adding a required name if needed.
  bool make_row_match_own_only(const ConflictSide& side, std::size_t r,
                               const std::set<std::size_t>& used) {
    MapRow& row = folded_.map.rows[r];
    const std::vector<CounterPattern>& patterns = side.patterns(row);
    std::set<std::size_t> own;
    collect_tensors_of_row(side, r, own);
    std::vector<Counters> mine, others;
    for (const auto& match : side.names.matches(patterns.front(), value_of())) {
      if (used.contains(match.index) || !is_whole(side, patterns, match.counters)) continue;
      const bool is_own = own.contains(match.index);
      (is_own ? mine : others).push_back(match.counters);
      if (!is_own) matched_of_other_rows_.emplace(side.is_from, match.index);
    }
    if (others.empty()) return true;
    for (const CounterPattern& one : patterns_with_same_counters(side, patterns.front())) {
      auto is_there = [&](const Counters& counters) {
        const auto name = name_of(one, counters, value_of());
        return name && side.names.find(*name).has_value();
      };
      if (!std::all_of(mine.begin(), mine.end(), is_there) ||
          std::any_of(others.begin(), others.end(), is_there))
        continue;
      side.with(row) = {one};
      return true;
    }
    return false;
  }
  // Patterns of all rows that use only this pattern's counters.
  std::vector<CounterPattern> patterns_with_same_counters(const ConflictSide& side,
                                                          const CounterPattern& of) const {
    std::vector<CounterPattern> out;
    for (const MapRow& row : folded_.map.rows) {
      for (const CounterPattern& pattern : side.patterns(row)) {
        const auto counters = counters_in(pattern);
        if (!counters.empty() && std::all_of(counters.begin(), counters.end(),
                                             [&](const std::string& one) { return of.has(one); }))
          out.push_back(pattern);
      }
    }
    return out;
  }

  // Moves a later row here that has tensors which row `r` matches too, and matches only its own:
  // the first row that fits a name counts. False if there is none.
  bool move_before(std::size_t r, const std::set<std::size_t>& from_used,
                   const std::set<std::size_t>& to_used) {
    const auto foreign = matched_of_other_rows_;
    for (std::size_t q = r + 1; q < folded_.map.rows.size(); ++q) {
      std::set<std::size_t> from, to;
      collect_tensors_of_row(from_, q, from);
      collect_tensors_of_row(to_, q, to);
      const bool is_owner = std::any_of(foreign.begin(), foreign.end(), [&](const auto& one) {
        return (one.first ? from : to).contains(one.second);
      });
      if (!is_owner || moved_.contains(folded_.learned[q].front()) ||
          !make_row_match_own_only(from_, q, from_used) ||
          !make_row_match_own_only(to_, q, to_used))
        continue;
      moved_.insert(folded_.learned[q].front());
      const auto turn = [&](auto& rows) {
        const auto first = rows.begin() + static_cast<std::ptrdiff_t>(r);
        const auto last = rows.begin() + static_cast<std::ptrdiff_t>(q);
        std::rotate(first, last, last + 1);
      };
      turn(folded_.map.rows);
      turn(folded_.learned);
      return true;
    }
    return false;
  }

  // Replaces a row without stacks by one row per tensor that it makes.
  bool replace_by_single_tensor_rows(std::size_t r) {
    const std::vector<std::size_t> rows = folded_.learned[r];
    if (rows.size() < 2 || !learned_.rows[rows.front()].row.lead.empty()) return false;
    const auto at = static_cast<std::ptrdiff_t>(r);
    const std::vector<MapOp> ops = folded_.map.rows[r].ops;
    folded_.map.rows.erase(folded_.map.rows.begin() + at);
    folded_.learned.erase(folded_.learned.begin() + at);
    std::vector<MapRow> made;
    std::vector<std::vector<std::size_t>> learned;
    for (std::size_t i : rows) {
      MapRow row;
      for (std::size_t f : learned_.rows[i].row.from.front())
        row.from.push_back(from_.side.patterns[f]);
      for (std::size_t t : learned_.rows[i].row.to) row.to.push_back(to_.side.patterns[t]);
      row.ops = ops;
      made.push_back(std::move(row));
      learned.push_back({i});
    }
    folded_.map.rows.insert(folded_.map.rows.begin() + at, made.begin(), made.end());
    folded_.learned.insert(folded_.learned.begin() + at, learned.begin(), learned.end());
    return true;
  }

  ConflictSide from_, to_;
  const LearnedRows& learned_;
  FoldedMap& folded_;
  // Tensors of other rows that the current row matches: whether of the left side, and their index.
  std::set<std::pair<bool, std::size_t>> matched_of_other_rows_;
  std::set<std::size_t> moved_;  // first learned row of each row that was moved
};

}  // namespace

void resolve_row_conflicts(const LearnSide& from, const LearnSide& to, const LearnedRows& learned,
                           FoldedMap& folded) {
  RowConflictResolver(from, to, learned, folded).run();
}

}  // namespace shw
