// Names of tensors with counters in them: "model.layers.{l}.mlp.experts.{e}.up_proj.weight".
//
//   pattern = {text | "{" counter ["+" value] "}"}
//
// A counter stands for a whole number without leading zeros. {m+layers}: the number is the counter
// plus the value "layers" of the map.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"

namespace shw {

using Counters = std::map<std::string, std::int64_t, std::less<>>;
// Looks up a value of the map by name; nullopt if unknown.
using LookUpValue = std::function<std::optional<std::int64_t>(std::string_view)>;

struct CounterPattern {
  struct Slot {
    std::string counter;      // empty: the number is literal text
    std::string plus = {};    // name of the value to add
    std::int64_t number = 0;  // of literal text
    std::size_t zeros = 0;    // number of leading zeros in it
  };
  std::string text;  // as it was written
  std::string key;   // numbers replaced by '#'
  std::vector<Slot> slots;

  bool has(std::string_view counter) const;
};

Result<CounterPattern> parse_counter_pattern(std::string_view text);
// Counters in the order of their first use.
std::vector<std::string> counters_in(const CounterPattern& pattern);
// The name for these counter values; nullopt if a counter or value is missing.
std::optional<std::string> name_of(const CounterPattern& pattern, const Counters& counters,
                                   const LookUpValue& value);

// Names indexed by key, so that 18,867 names and 60 patterns need no pairwise matching.
class NumberedNames {
 public:
  void add(std::string_view name, std::size_t index);
  struct Match {
    Counters counters;
    std::size_t index = 0;
  };
  // Sorted by the numbers in the names.
  std::vector<Match> matches(const CounterPattern& pattern, const LookUpValue& value) const;
  // Indices of the matching names, in the order of insertion.
  std::vector<std::size_t> indices(const CounterPattern& pattern, const LookUpValue& value) const;
  std::optional<std::size_t> find(std::string_view name) const;

 private:
  struct Named {
    std::vector<std::int64_t> numbers;
    std::size_t index = 0;
  };
  std::unordered_map<std::string, std::vector<Named>> by_key_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

}  // namespace shw
