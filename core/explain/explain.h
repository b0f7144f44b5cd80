// From an error message to what it can mean: every hypothesis that its shapes and names allow,
// the likeliest first. Nothing is opened and nothing is repaired: an
// explanation says what to look at.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/explain/error_text.h"
#include "core/explain/hypothesis.h"

namespace shw {

struct Explanation {
  ErrorText parsed;
  std::optional<Worlds> worlds;
  std::vector<Hypothesis> hypotheses;  // by rank
  double none_of_these = 0;            // the share of what is not in this list
  std::string decide;                  // where the first ones are near each other; may be empty
};

Explanation explain(std::string_view text, std::optional<Worlds> worlds = std::nullopt);

}  // namespace shw
