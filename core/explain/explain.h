// Ranks the possible causes of an error message by its shapes and names, most
// likely first. Opens and repairs nothing: an explanation says what to
// examine.
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
  std::optional<WorldSizes> worlds;
  std::vector<Hypothesis> hypotheses;  // by rank
  double none_of_these = 0;            // probability of causes not listed
  std::string decide;                  // what decides between similar likelihoods; may be empty
};

// Puts `path`, quoted for a shell, in the place of CHECKPOINT in the commands and texts.
void substitute_checkpoint_path(Explanation& explanation, const std::string& path);

Explanation explain(std::string_view text, std::optional<WorldSizes> worlds = std::nullopt);

}  // namespace shw
