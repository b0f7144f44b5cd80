#include "core/learn/fold_group.h"

#include <algorithm>

namespace shw {
namespace {

using Numbers = std::vector<std::int64_t>;

// The numbers in one name, for every cell of every row.
struct NameColumn {
  const CounterPattern* pattern = nullptr;  // of the first name
  bool is_target_side = false;
  std::vector<Numbers> slots = {};  // by slot, by cell
};
// The counter that a number in a name follows.
struct SlotRule {
  int counter = -1;  // -1: the number is constant
  std::int64_t shift = 0;
};

bool is_same_everywhere(const Numbers& numbers) {
  return std::all_of(numbers.begin(), numbers.end(),
                     [&](std::int64_t number) { return number == numbers.front(); });
}
// Difference of the numbers to the counter, if it is constant.
std::optional<std::int64_t> shift_between(const Numbers& numbers, const Numbers& counter) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] - counter[i] != numbers.front() - counter.front()) return std::nullopt;
  }
  return numbers.front() - counter.front();
}

class GroupFolder {
 public:
  GroupFolder(const LearnSide& from, const LearnSide& to, std::span<const FoundRow* const> rows,
              CounterShifts& shifts)
      : from_(from), to_(to), rows_(rows), shifts_(shifts) {}

  std::optional<MapRow> fold() {
    const FoundRow& first = *rows_.front();
    for (std::size_t i = 0; i < first.to.size(); ++i)
      columns_.push_back({&to_.patterns[first.to[i]], true});
    for (std::size_t f : first.from.front()) columns_.push_back({&from_.patterns[f], false});
    for (NameColumn& column : columns_) column.slots.resize(column.pattern->slots.size());
    leads_.resize(first.lead.size());
    for (const FoundRow* row : rows_) {
      for (std::size_t cell = 0; cell < row->from.size(); ++cell) {
        if (!add_cell(*row, cell)) return std::nullopt;
      }
    }
    if (!find_rules() || !is_lead_in_order()) return std::nullopt;
    return map_row_of_group(first);
  }

 private:
  bool add_cell(const FoundRow& row, std::size_t cell) {
    if (row.from[cell].size() + row.to.size() != columns_.size() ||
        row.lead.size() != leads_.size())
      return false;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      NameColumn& column = columns_[i];
      const CounterPattern& pattern = column.is_target_side
                                          ? to_.patterns[row.to[i]]
                                          : from_.patterns[row.from[cell][i - row.to.size()]];
      if (pattern.key != column.pattern->key) return false;
      for (std::size_t s = 0; s < column.slots.size(); ++s)
        column.slots[s].push_back(pattern.slots[s].number);
    }
    auto rest = static_cast<std::int64_t>(cell);
    for (std::size_t d = leads_.size(); d-- > 0;) {
      leads_[d].push_back(rest % row.lead[d]);
      rest /= row.lead[d];
    }
    return true;
  }

  // Finds counters: varying numbers of `to`, then the stacked dims.
  bool find_rules() {
    for (const NameColumn& column : columns_) {
      if (!column.is_target_side) continue;
      for (const Numbers& numbers : column.slots) {
        if (!is_same_everywhere(numbers) && !follows(numbers)) counters_.push_back(numbers);
      }
    }
    first_stack_dim_ = counters_.size();
    for (const Numbers& lead : leads_) counters_.push_back(lead);
    stack_dim_slots_.assign(leads_.size(), -1);
    for (NameColumn& column : columns_) {
      std::vector<SlotRule>& rules = rules_.emplace_back();
      const bool is_front = !column.is_target_side && rules_.size() == rows_.front()->to.size() + 1;
      for (std::size_t s = 0; s < column.slots.size(); ++s) {
        auto rule = rule_of(column, s, is_front);
        if (!rule) return false;
        rules.push_back(*rule);
      }
    }
    return true;
  }
  bool follows(const Numbers& numbers) const {
    return std::any_of(counters_.begin(), counters_.end(), [&](const Numbers& counter) {
      return shift_between(numbers, counter).has_value();
    });
  }
  std::optional<SlotRule> rule_of(const NameColumn& column, std::size_t s, bool is_front) {
    const Numbers& numbers = column.slots[s];
    for (std::size_t c = 0; c < counters_.size(); ++c) {
      const bool is_lead = c >= first_stack_dim_;
      if (is_lead && column.is_target_side) continue;
      const auto shift = shift_between(numbers, counters_[c]);
      // A stack of size one needs a number too, though it does not vary.
      const bool is_needed = is_lead && stack_dim_slots_[c - first_stack_dim_] < 0 && is_front;
      if (!shift || (is_same_everywhere(numbers) && !is_needed)) continue;
      if (is_lead && is_front && is_needed)
        stack_dim_slots_[c - first_stack_dim_] = static_cast<int>(s);
      return SlotRule{static_cast<int>(c), *shift};
    }
    if (is_same_everywhere(numbers)) return SlotRule{};
    return std::nullopt;
  }
  // True if the first name has a number for every stacked dim, in the order of the dims.
  bool is_lead_in_order() const {
    return std::is_sorted(stack_dim_slots_.begin(), stack_dim_slots_.end()) &&
           std::all_of(stack_dim_slots_.begin(), stack_dim_slots_.end(),
                       [](int slot) { return slot >= 0; });
  }

  // Smallest shift of each counter: shifts are counted from there, so that none is negative.
  std::vector<std::int64_t> smallest_shift_per_counter() const {
    std::vector<std::int64_t> least(counters_.size(), 0);
    for (const auto& rules : rules_) {
      for (const SlotRule& rule : rules) {
        if (rule.counter >= 0)
          least[static_cast<std::size_t>(rule.counter)] =
              std::min(least[static_cast<std::size_t>(rule.counter)], rule.shift);
      }
    }
    return least;
  }
  std::string counter_letter(std::size_t counter) const {
    static constexpr const char* kLetters[] = {"l", "e", "i", "j", "k", "n", "o", "p"};
    return kLetters[std::min<std::size_t>(counter, std::size(kLetters) - 1)];
  }
  // Names each counter by the text before its number.
  void name_counters() {
    names_.assign(counters_.size(), {});
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      std::size_t s = 0;
      const std::string& key = columns_[i].pattern->key;
      for (std::size_t at = 0; at < key.size(); ++at) {
        if (key[at] != '#') continue;
        const int counter = rules_[i][s++].counter;
        if (counter < 0 || !names_[static_cast<std::size_t>(counter)].empty()) continue;
        const std::string before = key.substr(0, at);
        const bool is_expert = before.ends_with("experts.") || before.ends_with("expert.");
        const std::string name = is_expert ? "e" : counter_letter(0);
        if (std::find(names_.begin(), names_.end(), name) == names_.end())
          names_[static_cast<std::size_t>(counter)] = name;
      }
    }
    for (std::size_t c = 0; c < names_.size(); ++c) {
      for (std::size_t k = 0; names_[c].empty() && k < 8; ++k) {
        if (std::find(names_.begin(), names_.end(), counter_letter(k)) == names_.end())
          names_[c] = counter_letter(k);
      }
    }
  }

  std::optional<CounterPattern> pattern_of(std::size_t i, const std::vector<std::int64_t>& least) {
    std::string text;
    std::size_t s = 0;
    for (char c : columns_[i].pattern->key) {
      if (c != '#') {
        text += c;
        continue;
      }
      const SlotRule& rule = rules_[i][s];
      if (rule.counter < 0) {
        text += std::to_string(columns_[i].slots[s].front());
      } else {
        const auto counter = static_cast<std::size_t>(rule.counter);
        const std::int64_t shift = rule.shift - least[counter];
        text += "{" + names_[counter];
        if (shift != 0) text += "+" + shifts_.name_of_shift(shift);
        text += "}";
      }
      ++s;
    }
    auto pattern = parse_counter_pattern(text);
    return pattern ? std::optional(std::move(*pattern)) : std::nullopt;
  }
  std::optional<MapRow> map_row_of_group(const FoundRow& first) {
    if (counters_.size() > 8) return std::nullopt;
    name_counters();
    const std::vector<std::int64_t> least = smallest_shift_per_counter();
    // Indices of a stack begin at 0, whatever numbers its tensors have.
    for (std::size_t c = first_stack_dim_; c < least.size(); ++c) {
      if (least[c] != 0) return std::nullopt;
    }
    MapRow row;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      auto pattern = pattern_of(i, least);
      if (!pattern) return std::nullopt;
      (columns_[i].is_target_side ? row.to : row.from).push_back(std::move(*pattern));
    }
    row.ops = map_ops_of(first.ops);
    return row;
  }

  const LearnSide& from_;
  const LearnSide& to_;
  std::span<const FoundRow* const> rows_;
  CounterShifts& shifts_;
  std::vector<NameColumn> columns_;
  std::vector<Numbers> leads_, counters_;
  std::size_t first_stack_dim_ = 0;
  std::vector<int> stack_dim_slots_;  // in the first name of `from`, by stacked dim
  std::vector<std::vector<SlotRule>> rules_;
  std::vector<std::string> names_;
};

std::vector<std::string> sizes_as_text(const Extents& sizes) {
  std::vector<std::string> out;
  for (std::int64_t size : sizes) out.push_back(std::to_string(size));
  return out;
}

}  // namespace

const std::string& CounterShifts::name_of_shift(std::int64_t shift) {
  auto [at, is_new] = names_.try_emplace(shift);
  if (is_new) {
    std::string letters;
    for (std::size_t n = names_.size(); n > 0; n = (n - 1) / 26)
      letters.insert(letters.begin(), static_cast<char>('a' + (n - 1) % 26));
    at->second = "shift_" + letters;
  }
  return at->second;
}

std::optional<MapRow> fold_group(const LearnSide& from, const LearnSide& to,
                                 std::span<const FoundRow* const> rows, CounterShifts& shifts) {
  return GroupFolder(from, to, rows, shifts).fold();
}

std::vector<MapOp> map_ops_of(const std::vector<BoundOp>& ops) {
  std::vector<MapOp> out;
  for (const BoundOp& op : ops) {
    MapOp made;
    made.kind = op.kind;
    made.dim = static_cast<std::int64_t>(op.dim);
    made.pieces = std::to_string(op.pieces);
    const bool are_equal = std::all_of(op.parts.begin(), op.parts.end(),
                                       [&](std::int64_t part) { return part == op.parts.front(); });
    if (op.kind != MapOp::Kind::kReorder || !are_equal) made.parts = sizes_as_text(op.parts);
    made.view = sizes_as_text(op.view);
    made.order = op.order;
    made.dtype = op.dtype;
    made.from_dtype = op.from_dtype;
    made.value = op.value;
    if (op.kind == MapOp::Kind::kPad) {
      made.size = std::to_string(op.size);
      made.to = std::to_string(op.to);
    }
    out.push_back(std::move(made));
  }
  return out;
}

}  // namespace shw
