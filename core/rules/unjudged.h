// What a check left open, and what would decide it, so that a verdict never claims more than was
// examined.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/facts/facts.h"
#include "core/model/finding.h"

namespace shw {

// A question that was left open, and what would decide it.
struct Unjudged {
  std::string what;       // "shapes and row order"
  std::string needs;      // "--spec or --against"
  std::string hint = {};  // the rule whose info suspects it; empty: none
};

// Specific to this checkpoint and the given options. `findings` must be final.
std::vector<Unjudged> unjudged_of(const Facts& facts, const std::vector<Finding>& findings);

// "shapes and row order (--spec or --against); values (--data)": one line, grouped by
// need.
std::string to_text(std::span<const Unjudged> unjudged);

// Rules whose hints say that parts may be missing or mixed: the headline must mention them.
std::vector<std::string> hints_in(std::span<const Unjudged> unjudged);

}  // namespace shw
