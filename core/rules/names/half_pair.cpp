// V-16: Adam keeps two moments for every parameter that it steps. A parameter with one of them
// lost the other on the way.
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/states/optimizer_states.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

using Kinds = std::map<std::string, std::set<std::string>, std::less<>>;  // by parameter

Kinds kinds_of(const Facts& facts) {
  const Checkpoint& checkpoint = facts.checkpoint;
  Kinds kinds;
  auto add = [&](std::string_view fqn) {
    if (auto path = parse_state_fqn(fqn))
      kinds[std::string(path->key)].insert(std::string(path->kind));
  };
  for (TensorId tensor : each_tensor(facts)) add(checkpoint.fqn(tensor));
  // A state that is an object counts as there: what it holds is not looked at.
  auto objects = checkpoint.objects();
  for (const ObjectRow& object : each_of(objects, facts)) add(object.fqn);
  return kinds;
}

// Another optimizer's second moment (Adafactor's rows and columns, 8-bit states) under a name that
// begins alike.
bool has_relative(const std::set<std::string>& kinds, std::string_view stem) {
  for (const std::string& kind : kinds) {
    if (kind != stem && kind != "exp_avg" && kind != "exp_avg_sq" &&
        (kind.starts_with("exp_") || kind.find("avg") != std::string::npos))
      return true;
  }
  return false;
}

void find_half_pairs(const Facts& facts, std::vector<Finding>& findings) {
  Kinds kinds = kinds_of(facts);
  Finding finding;
  finding.rule = "half-pair";
  finding.severity = Severity::kWarning;
  std::vector<std::string> missing;
  std::size_t whole = 0;
  for (const auto& [key, set] : each_of(kinds, facts)) {
    bool first = set.contains("exp_avg"), second = set.contains("exp_avg_sq");
    if (first && second) ++whole;
    if (first == second || has_relative(set, first ? "exp_avg" : "exp_avg_sq")) continue;
    finding.subjects.push_back(key);
    missing.push_back(key + ": " + (first ? "exp_avg_sq" : "exp_avg"));
  }
  // One optimizer with one moment (Lion, SGD) beside Adam for some parameters is no damage: only
  // the exception among many is.
  if (finding.subjects.empty() || whole < 4 || finding.subjects.size() * 4 > whole) return;
  finding.cause = "The optimizer has both moments for " + plural(whole, "parameter") +
                  " and one of the two for " + some_of(finding.subjects) +
                  ": the other was lost when it was saved, and a load fails or starts it at zero.";
  finding.evidence = {{"missing", capped(missing)},
                      {"count", count_of(missing.size())},
                      {"with_both", count_of(whole)}};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kHalfPair = {
    .id = "half-pair",
    .depth = Depth::kMetadata,
    .title = "One of the two moments of a parameter is missing",
    .teaches =
        "Adam keeps two running means a parameter, exp_avg and exp_avg_sq, and needs both: the "
        "step is one divided by the root of the other. Here nearly every parameter has both and a "
        "few have one. Optimizers that keep one mean (Lion, SGD with momentum) or keep the second "
        "in another form (Adafactor, 8-bit) are left alone. What is missing cannot be worked out "
        "from the rest; the least harm is to start both moments of that parameter at zero.",
    .lesson =
        {.drawing = R"(
                     exp_avg   exp_avg_sq
  layers.0.weight      x           x
  layers.1.weight      x           -       lost
  layers.2.weight      x           x
)",
         .remedy =
             "Start both moments of that parameter at zero, or take them from the step before.",
         .link = "https://github.com/pytorch/pytorch/issues/143828"},
    .run = find_half_pairs,
};

}  // namespace shw
