// Adam keeps two moments per stepped parameter. A parameter with only one has lost the
// other.
#include <algorithm>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/states/optimizer_settings.h"
#include "core/facts/states/optimizer_states.h"
#include "core/rules/names/half_adapters.h"
#include "core/rules/names/half_autoencoders.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

using Kinds = std::map<std::string, std::set<std::string>, std::less<>>;  // by parameter

// Kinds by optimizer, because another optimizer may keep other states.
std::map<std::string, Kinds> state_kinds_by_optimizer(const Facts& facts) {
  const Checkpoint& checkpoint = facts.checkpoint;
  std::map<std::string, Kinds> kinds;
  auto add = [&](std::string_view fqn) {
    if (auto path = parse_state_fqn(fqn))
      kinds[optimizer_prefix(fqn).value_or("")][std::string(path->key)].emplace(path->kind);
  };
  for (TensorId tensor : each_tensor(facts)) add(checkpoint.fqn(tensor));
  // A state stored as an object counts as present; its contents are not examined.
  auto objects = checkpoint.objects();
  for (const NonTensorEntry& object : each_of(objects, facts)) add(object.fqn);
  return kinds;
}

bool has(const std::set<std::string>& kinds, bool first, bool second) {
  return kinds.contains("exp_avg") == first && kinds.contains("exp_avg_sq") == second;
}

// True if the parameter lacks a moment and has no other kinds: schedule-free's z, Adafactor's rows
// and columns and 8-bit states belong to other optimizers.
bool lacks_one_moment(const std::set<std::string>& kinds, const std::set<std::string>& of_whole) {
  return (has(kinds, true, false) || has(kinds, false, true)) &&
         std::includes(of_whole.begin(), of_whole.end(), kinds.begin(), kinds.end());
}

struct HalfPairs {
  std::vector<std::string> keys, missing;
  std::size_t whole = 0;
};

void add_half_pairs(const Facts& facts, const Kinds& kinds, HalfPairs& out) {
  std::set<std::string> of_whole;
  std::size_t whole = 0;
  for (const auto& [key, set] : each_of(kinds, facts)) {
    if (!has(set, true, true)) continue;
    ++whole;
    of_whole.insert(set.begin(), set.end());
  }
  std::vector<std::string> keys;
  for (const auto& [key, set] : each_of(kinds, facts)) {
    if (lacks_one_moment(set, of_whole)) keys.push_back(key);
  }
  // Some parameters may use an optimizer with one moment (Lion, SGD) next to Adam; only an
  // exception among many is damage.
  if (keys.empty() || whole < 4 || keys.size() * 4 > whole) return;
  out.whole += whole;
  for (std::string& key : keys) {
    const bool first = kinds.at(key).contains("exp_avg");
    out.missing.push_back(key + ": " + (first ? "exp_avg_sq" : "exp_avg"));
    out.keys.push_back(std::move(key));
  }
}

void find_half_moments(const Facts& facts, std::vector<Finding>& findings) {
  HalfPairs found;
  for (const auto& [optimizer, kinds] : state_kinds_by_optimizer(facts))
    add_half_pairs(facts, kinds, found);
  if (found.keys.empty()) return;
  Finding finding{
      .rule = "half-pair", .severity = Severity::kWarning, .subjects = std::move(found.keys)};
  finding.cause = "The optimizer has both moments for " + plural(found.whole, "parameter") +
                  " but only one of the two for " + short_list_text(finding.subjects) +
                  ": the other was lost in the save. A load fails or starts it at zero.";
  finding.evidence = {{"missing", capped(found.missing)},
                      {"count", count_of(found.missing.size())},
                      {"with_both", count_of(found.whole)}};
  findings.push_back(std::move(finding));
}

void find_half_pairs(const Facts& facts, std::vector<Finding>& findings) {
  find_half_moments(facts, findings);
  find_half_adapters(facts, findings);
  find_half_autoencoders(facts, findings);
}

}  // namespace

const Rule kHalfPair = {
    .id = "half-pair",
    .depth = Depth::kMetadata,
    .title = "One tensor of a pair that belongs together is missing",
    .teaches =
        "Adam keeps two running means per parameter, exp_avg and exp_avg_sq, and needs both: the "
        "update is one divided by the root of the other. Here nearly every parameter has both and "
        "a few have one. Optimizers that keep one mean (Lion, SGD with momentum) or store the "
        "second differently (Adafactor, schedule-free, 8-bit) are not reported. The missing moment "
        "cannot be computed from the rest; starting both moments of that parameter at zero does "
        "the least harm. A LoRA adapter also needs both of its matrices: with one lost it has no "
        "effect.",
    .lesson =
        {.drawing = R"(
                     exp_avg   exp_avg_sq
  layers.0.weight      x           x
  layers.1.weight      x           -       lost
  layers.2.weight      x           x
)",
         .remedy =
             "Start both moments of that parameter at zero, or take them from the previous step.",
         .link = "https://github.com/pytorch/pytorch/issues/143828"},
    .run = find_half_pairs,
};

}  // namespace shw
