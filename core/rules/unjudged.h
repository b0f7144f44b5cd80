// What a check did not judge, and what would decide it: a verdict never says more than was looked
// at.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/facts/facts.h"
#include "core/model/finding.h"

namespace shw {

// Something that was not judged, and what would decide it.
struct Unjudged {
  std::string what;       // "shapes and row order"
  std::string needs;      // "--spec or --against"
  std::string hint = {};  // the rule whose info finding suspects it; empty: nothing does
};

// Only what is true of this checkpoint and of what was given. `findings` are final.
std::vector<Unjudged> unjudged_of(const Facts& facts, const std::vector<Finding>& findings);

// "shapes and row order (--spec or --against); values (--data)": one line for people, what has the
// same need together.
std::string to_text(std::span<const Unjudged> unjudged);

// The rules whose hints say that parts may be gone or mixed: no headline is calm over them.
std::vector<std::string> hints_in(std::span<const Unjudged> unjudged);

}  // namespace shw
