// Step counts that contradict the moments, parameters in no group or in two, and groups in another
// order than the reference's.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/states/optimizer_steps.h"
#include "core/rules/rules.h"
#include "core/rules/values/coarse_steps.h"
#include "core/rules/values/groups_without_states.h"
#include "core/rules/values/stale_steps.h"

namespace shw {
namespace {

constexpr const char* kLink = "TransformerEngine #1986, #3318";

std::string step_text(const std::optional<double>& step) {
  PlainValue value;
  value.kind = step ? PlainValue::Kind::kNumber : PlainValue::Kind::kNone;
  value.number = step.value_or(0);
  return to_text(value);
}

std::string step_assignment_text(const SavedStep& step) {
  return step.fqn + " = " + step_text(step.step);
}

// Steps.

// Plans that every wrong entry gets the common step; false if one cannot be changed.
bool plan_step_corrections(const Checkpoint& c, const StepCheck& steps, Finding& finding) {
  if (!steps.latest || !steps.are_other_steps_equal || !steps.is_exception) return false;
  for (const WrongStep& wrong : steps.wrong) {
    const SavedStep& step = *wrong.step;
    if (step.tensor && steps.tensor_with_latest_step != nullptr &&
        c.dtype(*step.tensor) == c.dtype(*steps.tensor_with_latest_step->tensor) &&
        same(c.shape(*step.tensor), c.shape(*steps.tensor_with_latest_step->tensor))) {
      finding.diagnoses.emplace_back(PartlyLost{
          *step.tensor, copy_of(c.shape(*step.tensor)), {}, steps.tensor_with_latest_step->fqn});
    } else if (step.object && steps.object_with_latest_step != nullptr) {
      finding.entries.push_back({step.fqn, steps.object_with_latest_step->fqn});
    } else {
      finding.diagnoses.clear();
      finding.entries.clear();
      return false;
    }
  }
  return true;
}

void report_wrong_steps(const Checkpoint& c, const StepCheck& steps,
                        std::vector<Finding>& findings) {
  if (steps.wrong.empty()) return;
  Finding finding{.rule = "optimizer-groups",
                  .severity = steps.is_exception || steps.has_invalid_counts ? Severity::kWarning
                                                                             : Severity::kInfo};
  finding.link = kLink;
  std::vector<std::string> lines, reasons;
  for (const WrongStep& wrong : steps.wrong) {
    add_subject(finding.subjects, wrong.step->fqn);
    lines.push_back(step_assignment_text(*wrong.step));
    reasons.push_back(wrong.why);
  }
  std::string latest = step_text(steps.latest);
  finding.cause = plural(lines.size(), "optimizer step") + " cannot be right (" +
                  short_list_text(lines) +
                  "): " + (steps.latest ? "others are at " + latest + ", and this" : "this") +
                  " is contradicted by " + reasons.front() + ".";
  finding.evidence = {{"steps", capped(lines)},
                      {"count", count_of(lines.size())},
                      {"contradicted_by", capped(reasons)}};
  if (steps.latest) finding.evidence.emplace_back("latest_step", *steps.latest);
  if (plan_step_corrections(c, steps, finding)) {
    finding.remedy = Remedy{
        "fill", false,
        "The step becomes " + latest +
            ", which all others have; the saved value is overwritten. Nothing else changes."};
  } else {
    finding.evidence.emplace_back(
        "what_to_do",
        "no safe remedy" +
            std::string(steps.are_other_steps_equal ? ": no other step is stored in the same form"
                                                    : ": the other steps are not equal") +
            ". Load the optimizer, set the step of these groups to the number of "
            "updates that they had" +
            (steps.latest ? " (" + latest + " if they were trained from the start)" : "") +
            ", and save again");
  }
  findings.push_back(std::move(finding));
}

// Wording for step counts that differ from the others for an unknown reason.
struct DeviatingStepsText {
  const std::vector<const SavedStep*>& steps;
  const char *where, *others;  // texts such as "far behind the others", "others are at"
  const char *can_be, *decides;
  const char* evidence;  // key of the other states' step in the evidence
};

void report_steps_apart(const DeviatingStepsText& apart, std::optional<double> others,
                        std::vector<Finding>& findings) {
  if (apart.steps.empty()) return;
  Finding finding{.rule = "optimizer-groups", .severity = Severity::kInfo};
  std::vector<std::string> lines;
  for (const SavedStep* step : apart.steps) {
    add_subject(finding.subjects, step->fqn);
    lines.push_back(step_assignment_text(*step));
  }
  finding.cause =
      fmt::format("{} {} ({}; {} {}): {}.", plural(lines.size(), "optimizer step"), apart.where,
                  short_list_text(lines), apart.others, step_text(others), apart.can_be);
  finding.evidence = {{"steps", capped(lines)},
                      {"count", count_of(lines.size())},
                      {apart.evidence, others.value_or(0)},
                      {"what_would_decide", std::string(apart.decides)}};
  findings.push_back(std::move(finding));
}

void report_undecided_steps(const StepCheck& steps, std::vector<Finding>& findings) {
  report_steps_apart(
      {steps.unknown, "far behind the others", "others are at",
       "parameters that were added recently, or a step that was not counted",
       "an earlier checkpoint (--against), or moments that can be read as plain numbers",
       "latest_step"},
      steps.latest, findings);
  report_steps_apart(
      {steps.ahead, "far ahead of the others", "most are at",
       "parameters that were trained before the others were added, or an overwritten value",
       "an earlier checkpoint (--against)", "step_of_most"},
      steps.latest, findings);
}

// Membership.

bool is_index(const std::string& text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(text.begin(), text.end(), [](char ch) { return ch >= '0' && ch <= '9'; });
}

// True if listed, directly or as part of a listed parameter: SOAP's bases "3.weight.Q.0" belong to
// "3.weight".
bool is_listed_or_part_of_listed(const std::set<std::string>& listed, std::string key) {
  while (!listed.contains(key)) {
    std::size_t dot = key.rfind('.');
    if (dot == std::string::npos) return false;
    key.resize(dot);
  }
  return true;
}

struct Membership {
  std::vector<std::string> twice, missing, orphans;
};

Membership listed_parameters_of(const SavedOptimizer& optimizer) {
  Membership out;
  std::set<std::string> listed;
  for (const ParamGroup& group : optimizer.groups) {
    for (const std::string& param : group.params) {
      if (!listed.insert(param).second) out.twice.push_back(param);
    }
  }
  std::size_t known = 0;
  for (const std::string& key : optimizer.keys) {
    if (is_listed_or_part_of_listed(listed, key)) {
      ++known;
    } else {
      out.orphans.push_back(key);
    }
  }
  // Different spellings of lists and states cannot be compared.
  if (known * 2 < optimizer.keys.size()) out.orphans.clear();
  // torch numbers parameters across all groups without gaps.
  bool by_index = std::all_of(listed.begin(), listed.end(), is_index);
  for (std::size_t i = 0; by_index && i < listed.size(); ++i) {
    if (!listed.contains(std::to_string(i))) out.missing.push_back(std::to_string(i));
  }
  return out;
}

void report_membership(const SavedOptimizer& optimizer, std::vector<Finding>& findings) {
  bool lists = !optimizer.by_parameter && !optimizer.groups.empty() &&
               std::all_of(optimizer.groups.begin(), optimizer.groups.end(),
                           [](const ParamGroup& group) { return group.lists_params; });
  if (!lists) return;
  Membership seen = listed_parameters_of(optimizer);
  if (seen.twice.empty() && seen.missing.empty() && seen.orphans.empty()) return;
  Finding finding{.rule = "optimizer-groups"};
  // Gaps are unusual but harmless. If many states are in no group, each pipeline stage had its own
  // groups and only one stage's were kept.
  bool exception = seen.orphans.size() * 4 <= optimizer.keys.size();
  bool harms = !seen.twice.empty() || (!seen.orphans.empty() && exception);
  finding.severity = harms ? Severity::kWarning : Severity::kInfo;
  std::vector<std::string> what;
  auto add = [&](const std::vector<std::string>& names, const std::string& text) {
    if (!names.empty()) what.push_back(text + " (" + short_list_text(names) + ")");
  };
  add(seen.twice, plural(seen.twice.size(), "parameter") + " listed twice");
  add(seen.orphans, plural(seen.orphans.size(), "parameter") + " with states in no group");
  add(seen.missing, plural(seen.missing.size(), "number") + " left out");
  finding.cause = "The parameter groups of " + optimizer.prefix +
                  "param_groups cannot be right: " + short_list_text(what) +
                  "; a loader that matches by position assigns states to the wrong parameters.";
  for (const ParamGroup& group : optimizer.groups)
    finding.subjects.push_back(optimizer.prefix + "param_groups." + group.name + ".params");
  finding.evidence = {
      {"listed_twice", capped(seen.twice)},
      {"states_in_no_group", capped(seen.orphans)},
      {"numbers_left_out", capped(seen.missing)},
      {"what_to_do",
       "no safe remedy: the checkpoint does not show which list is right. Compare with a "
       "checkpoint of the same run (--against), or load by name and save again"}};
  findings.push_back(std::move(finding));
}

// The reference.

// Settings of a group that stay constant during training.
std::map<std::string, PlainValue> constant_settings(const ParamGroup& group) {
  std::map<std::string, PlainValue> out;
  for (const char* name : {"weight_decay", "betas", "eps", "momentum", "lr_mult", "wd_mult",
                           "is_expert_parallel", "is_decoupled_lr"}) {
    auto found = group.values.find(name);
    if (found != group.values.end()) out.emplace(name, found->second);
  }
  return out;
}

bool same_members(const ParamGroup& a, const ParamGroup& b) {
  bool by_index = !a.params.empty() && is_index(a.params.front());
  if (a.params.size() != b.params.size() || a.lists_params != b.lists_params) return false;
  if (by_index) return true;  // numbers depend on the order of groups
  return std::set(a.params.begin(), a.params.end()) == std::set(b.params.begin(), b.params.end());
}

using GroupMatcher = bool (*)(const ParamGroup&, const ParamGroup&);

// By group of `theirs`: its index in `mine`; nullopt if a group matches none or two.
std::optional<std::vector<std::size_t>> match(const std::vector<ParamGroup>& mine,
                                              const std::vector<ParamGroup>& theirs,
                                              GroupMatcher fits) {
  std::vector<std::size_t> order;
  for (const ParamGroup& their : theirs) {
    std::optional<std::size_t> found;
    for (std::size_t g = 0; g < mine.size(); ++g) {
      if (!fits(mine[g], their)) continue;
      if (found) return std::nullopt;
      found = g;
    }
    if (!found || std::find(order.begin(), order.end(), *found) != order.end()) return std::nullopt;
    order.push_back(*found);
  }
  return order;
}

bool in_place(const std::vector<ParamGroup>& mine, const std::vector<ParamGroup>& theirs,
              GroupMatcher fits) {
  for (std::size_t g = 0; g < mine.size(); ++g) {
    if (!fits(mine[g], theirs[g])) return false;
  }
  return true;
}

// Assigns the matching group's values to every entry of a group.
std::vector<ReplacedEntry> reordered_entries(const Checkpoint& c, const SavedOptimizer& optimizer,
                                             const std::vector<std::size_t>& order) {
  std::map<std::string, std::set<std::string>> kinds;  // by group
  std::string before = optimizer.prefix + "param_groups.";
  for (const NonTensorEntry& row : c.objects()) {
    if (!row.fqn.starts_with(before)) continue;
    std::size_t dot = row.fqn.find('.', before.size());
    if (dot == std::string::npos) return {};
    kinds[row.fqn.substr(before.size(), dot - before.size())].insert(row.fqn.substr(dot));
  }
  std::vector<ReplacedEntry> out;
  for (std::size_t g = 0; g < order.size(); ++g) {
    const ParamGroup &to = optimizer.groups[g], &from = optimizer.groups[order[g]];
    bool tensors = to.step && to.step->tensor;
    if (kinds[to.name].empty() || kinds[to.name] != kinds[from.name] || tensors) return {};
    if (to.name == from.name) continue;
    for (const std::string& kind : kinds[to.name])
      out.push_back({before + to.name + kind, before + from.name + kind});
  }
  return out;
}

void report_order(const Checkpoint& c, const SavedOptimizer& mine, const SavedOptimizer& theirs,
                  const std::string& reference, std::vector<Finding>& findings) {
  constexpr std::size_t kMaxGroups = 64;
  if (mine.by_parameter || theirs.by_parameter || mine.groups.size() != theirs.groups.size() ||
      mine.groups.size() < 2 || mine.groups.size() > kMaxGroups)
    return;
  GroupMatcher by_settings = [](const ParamGroup& a, const ParamGroup& b) {
    return constant_settings(a) == constant_settings(b);
  };
  GroupMatcher by_all = [](const ParamGroup& a, const ParamGroup& b) {
    return same_members(a, b) && constant_settings(a) == constant_settings(b);
  };
  if (in_place(mine.groups, theirs.groups, by_all)) return;
  bool members_stay = in_place(mine.groups, theirs.groups, same_members);
  auto order = match(mine.groups, theirs.groups, members_stay ? by_settings : by_all);
  if (!order) return;
  Finding finding{.rule = "optimizer-groups", .severity = Severity::kWarning};
  std::vector<std::string> lines;
  for (std::size_t g = 0; g < order->size(); ++g) {
    finding.subjects.push_back(mine.prefix + "param_groups." + mine.groups[g].name);
    if ((*order)[g] != g)
      lines.push_back("group " + mine.groups[(*order)[g]].name + " is group " +
                      theirs.groups[g].name + " there");
  }
  finding.cause =
      std::string(members_stay ? "The settings of the parameter groups" : "The parameter groups") +
      " are ordered differently from " + reference + " (" + short_list_text(lines) +
      "): a load by position gives a group the settings of another group.";
  finding.evidence = {{"groups", capped(lines)}, {"reference", reference}};
  // Reorders only if groups list parameters by name: indices would be renumbered with the groups,
  // so nothing can be matched.
  bool by_name = std::all_of(mine.groups.begin(), mine.groups.end(), [](const ParamGroup& group) {
    return std::none_of(group.params.begin(), group.params.end(), is_index);
  });
  if (!members_stay && by_name) finding.entries = reordered_entries(c, mine, *order);
  if (!finding.entries.empty()) {
    finding.remedy = Remedy{"rename", true,
                            "Put the groups into the order of the reference, by their parameters' "
                            "names. No byte moves."};
  } else {
    finding.evidence.emplace_back(
        "what_to_do",
        "no safe remedy: build the optimizer with its groups in the order of this checkpoint, "
        "load, then regroup by parameter names");
  }
  findings.push_back(std::move(finding));
}

// The optimizer of the reference that corresponds to this one; null if there is none.
const SavedOptimizer* counterpart_of(const SavedOptimizer& optimizer, const OptimizerSettings& mine,
                                     const OptimizerSettings& theirs) {
  const SavedOptimizer* other = find_optimizer(theirs, optimizer.prefix);
  bool single = mine.optimizers.size() == 1 && theirs.optimizers.size() == 1;
  return other == nullptr && single ? &theirs.optimizers.front() : other;
}

std::string name_of(const Checkpoint& checkpoint) {
  return checkpoint.directory() == nullptr ? "the reference" : checkpoint.directory()->name();
}

void find_optimizer_group_faults(const Facts& facts, std::vector<Finding>& findings) {
  const OptimizerSettings& settings = facts.optimizer_settings;
  if (settings.optimizers.empty()) return;
  OptimizerSettings reference;
  if (facts.reference != nullptr)
    reference = read_optimizer_settings(*facts.reference, facts.progress);
  // Only suspicious values are read: this rule also runs without --data.
  ValueBudget budget;
  budget.per_tensor = std::uint64_t{4} << 20;
  budget.left = std::uint64_t{64} << 20;
  std::vector<MomentPair> pairs = moment_pairs(facts);
  for (const SavedOptimizer& optimizer : settings.optimizers) {
    const SavedOptimizer* other = counterpart_of(optimizer, settings, reference);
    StepCheck steps = check_steps(facts, optimizer, other, pairs, budget);
    report_wrong_steps(facts.checkpoint, steps, findings);
    report_undecided_steps(steps, findings);
    report_stale_steps(facts, optimizer, pairs, findings);
    report_coarse_steps(facts, optimizer, findings);
    report_membership(optimizer, findings);
    find_groups_without_states(facts, optimizer, findings);
    if (other != nullptr)
      report_order(facts.checkpoint, optimizer, *other, name_of(*facts.reference), findings);
  }
}

}  // namespace

const Rule kOptimizerGroups = {
    .id = "optimizer-groups",
    .depth = Depth::kHeaders,
    .title = "Optimizer steps or parameter groups are impossible",
    .teaches =
        "An optimizer saves settings per group, and the number of steps per group or per "
        "parameter. A group that was empty on the rank whose copy was kept may say step 1, or "
        "none, while the others are at 100: the first updates after a load are then too large. The "
        "moments show it: after no step both are zero; after one step the square of the first "
        "divided by the second is one constant; after few steps its bound is lower than after "
        "many. A step that the moments contradict is impossible, and so is one that is not a count "
        "(NaN, negative); if all other steps agree, the repair sets it to theirs. Recently added "
        "parameters, frozen ones, and groups with different settings are not reported. With a "
        "reference (--against) groups in a different order are found too: torch matches them by "
        "position. A strict load fails at parameters that flattened groups name but that have no "
        "states. A step that was cast with the weights to bfloat16 or float16 cannot count past "
        "256 or 2,048.",
    .lesson = {.drawing = R"(
  group   weight_decay   step   moments of its parameters
    0         0.1         100   those of many steps
    1         0.0           1   those of many steps, too: step 1 cannot be
)",
               .remedy =
                   "If all other steps agree, the repair sets the impossible one to theirs. With a "
                   "reference, groups are put into its order, by their parameters' names.",
               .link = "https://github.com/NVIDIA/TransformerEngine/issues/1986"},
    .run = find_optimizer_group_faults,
};

}  // namespace shw
