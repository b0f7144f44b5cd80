// Folds rows that differ only in numbers into one row with counters.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "core/learn/learn_side.h"
#include "core/learn/learned_rows.h"
#include "core/maps/model_map.h"

namespace shw {

// Names of the constants that a map's patterns add to counters ("{m+shift_a}"), by their value.
class CounterShifts {
 public:
  const std::string& name_of_shift(std::int64_t shift);
  const std::map<std::int64_t, std::string>& all() const { return names_; }

 private:
  std::map<std::int64_t, std::string> names_;
};

// Folds rows with equal operations whose names differ only in their numbers. nullopt if no counters
// reproduce those numbers. Counters of a single row only number its stacked dims.
std::optional<MapRow> fold_group(const LearnSide& from, const LearnSide& to,
                                 std::span<const FoundRow* const> rows, CounterShifts& shifts);

std::vector<MapOp> map_ops_of(const std::vector<BoundOp>& ops);

}  // namespace shw
