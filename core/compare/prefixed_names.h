// Names of one checkpoint that the other one has behind a prefix.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "core/model/checkpoint.h"

namespace shw {

struct PrefixedNames {
  std::string prefix;     // "model."
  std::size_t count = 0;  // names of `shorter` that `longer` has behind it
};
// The prefix that most names share; nullopt if fewer than half of the names of `shorter` are found
// behind one.
std::optional<PrefixedNames> match_names_with_one_prefix(const Checkpoint& shorter,
                                                         const Checkpoint& longer);

}  // namespace shw
