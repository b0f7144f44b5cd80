// Questions that a check left open, with what would answer them, so that a verdict never claims
// more than was examined.
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
  // Items without a checksum: they were read, and nothing proves that they are as they were
  // written.
  bool is_unproved_bytes = false;
};

// Specific to this checkpoint and the given options. `findings` must be final.
std::vector<Unjudged> unjudged_of(const Facts& facts, const std::vector<Finding>& findings);

// Open questions that the same option would answer (`needs`: "--spec or --against").
struct UnjudgedGroup {
  std::string needs;
  std::vector<std::string> whats;  // each once
};
// In the order in which each need first occurs.
std::vector<UnjudgedGroup> group_by_need(std::span<const Unjudged> unjudged);

// "shapes and row order (--spec or --against); values (--data)": one line, grouped by
// need.
std::string to_text(std::span<const Unjudged> unjudged);

// True if items were read that no checksum proves.
bool has_unproved_bytes(std::span<const Unjudged> unjudged);

// Rules whose hints say that parts may be missing or mixed: the headline must mention them.
std::vector<std::string> rules_with_hints(std::span<const Unjudged> unjudged);

}  // namespace shw
