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
// A value of a map by its name; nothing where it is not known.
using ValueOf = std::function<std::optional<std::int64_t>(std::string_view)>;

struct CounterPattern {
  struct Slot {
    std::string counter;      // empty: the number is part of the text
    std::string plus = {};    // the value that is added
    std::int64_t number = 0;  // of a part of the text
    std::size_t zeros = 0;    // that stand before it there
  };
  std::string text;  // as it was written
  std::string key;   // numbers replaced by '#'
  std::vector<Slot> slots;

  bool has(std::string_view counter) const;
};

Result<CounterPattern> parse_counter_pattern(std::string_view text);
// In the order in which they first stand there.
std::vector<std::string> counters_in(const CounterPattern& pattern);
// The name for these counters; nothing where a counter or a value is missing.
std::optional<std::string> name_of(const CounterPattern& pattern, const Counters& counters,
                                   const ValueOf& value);

// Names by their key: of 18,867 names and 60 patterns nobody compares each with each.
class NumberedNames {
 public:
  void add(std::string_view name, std::size_t index);
  struct Match {
    Counters counters;
    std::size_t index = 0;
  };
  // In the order of their numbers.
  std::vector<Match> matches(const CounterPattern& pattern, const ValueOf& value) const;
  // The indices of `matches`, in the order in which names were added.
  std::vector<std::size_t> indices(const CounterPattern& pattern, const ValueOf& value) const;
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
