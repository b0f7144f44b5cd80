// Looks at a checkpoint and says what is wrong: a list of rules, each a pure function of what was
// opened.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/facts/facts.h"
#include "core/spec/spec.h"

namespace shw {

struct CheckOptions {
  std::optional<Depth> depth;        // default: headers up to 100,000 items, metadata above
  std::shared_ptr<const Spec> spec;  // may be null
  std::optional<Mesh> mesh;          // what the person said (--mesh)
  // Another checkpoint of the same model (--against): its names, shapes and dtypes are expected
  // where there is no spec, and rules may compare bytes with it. May be null.
  std::shared_ptr<const Checkpoint> reference = nullptr;
};

enum class Verdict : std::uint8_t { kClean, kFindings, kUndecided };
std::string_view name(Verdict verdict);

// Something that was not judged, and what would decide it.
struct Unjudged {
  std::string what;       // "shapes and row order"
  std::string needs;      // "--spec or --against"
  std::string hint = {};  // the rule whose info finding suspects it; empty: nothing does
};

struct CheckReport {
  Verdict verdict = Verdict::kClean;  // kFindings: at least one above info; kUndecided: something
                                      // could not be looked at
  Depth depth = Depth::kMetadata;
  std::string deeper;             // what a deeper look could still find; empty at kData
  std::vector<Finding> findings;  // causes before what they explain, then by severity
  std::shared_ptr<const Spec> spec = nullptr;  // what was expected: given, or from the reference
  std::vector<Unjudged> unjudged = {};         // hints first
};

using RuleFunction = void (*)(const Facts&, std::vector<Finding>&);

struct Rule {
  std::string_view id;
  Depth depth;             // the least that it needs
  std::string_view title;  // "Placement recorded for the wrong axis"
  std::string_view
      teaches;  // a paragraph for `explain ID`: what it means, how it happens, what can be done
  RuleFunction run;  // null for those that opening, or another rule, reports
};

// In the order in which they run: causes first.
std::span<const Rule> all_rules();
const Rule* find_rule(std::string_view id);

Result<CheckReport> check(const Checkpoint& checkpoint, const CheckOptions& options,
                          Progress* progress = nullptr);

}  // namespace shw
