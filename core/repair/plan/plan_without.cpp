#include "core/repair/plan/plan_without.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>

#include "core/repair/lower/lower.h"
#include "core/repair/plan/entries.h"
#include "core/repair/plan/plan.h"

namespace shw {
namespace {

using Names = std::set<std::string_view>;

bool is_rewrite(const Operation& operation) {
  return operation.kind == OperationKind::kRewriteMetadata;
}
// True if it changes a tensor's tiles. A rename does not.
bool changes_tiles(const Operation& operation) {
  return !is_rewrite(operation) && operation.kind != OperationKind::kRename;
}

Names subjects_of(const Plan& plan, const DisabledSteps& off, bool wanted_off,
                  bool (*wanted)(const Operation&)) {
  Names names;
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    if (off[i] != wanted_off || !wanted(plan.operations[i])) continue;
    names.insert(plan.operations[i].subjects.begin(), plan.operations[i].subjects.end());
  }
  return names;
}
bool is_rename(const Operation& operation) {
  return operation.kind == OperationKind::kRename;
}

// The rest of a tensor's plan; nullopt if neither its tiles nor its name change any more.
Result<std::optional<PlannedTensor>> remaining_tensor_plan(const Checkpoint& checkpoint,
                                                           const PlannedTensor& planned,
                                                           bool tiles_off, bool had_tiles,
                                                           bool name_off) {
  std::optional<PlannedTensor> stays;
  if (tiles_off) {
    if (name_off || planned.fqn.empty()) return stays;
    SHW_TRY(stays, lower_renamed(checkpoint, {planned.tensor, planned.fqn, {}}));
    return stays;
  }
  if (name_off && !had_tiles) return stays;
  stays = planned;
  if (name_off) stays->fqn.clear();
  return stays;
}

Status drop_tensors(const Checkpoint& checkpoint, const Plan& whole, const DisabledSteps& off,
                    Plan& plan) {
  const Names tiles_off = subjects_of(whole, off, true, changes_tiles);
  const Names names_off = subjects_of(whole, off, true, is_rename);
  const Names tiles_on = subjects_of(whole, off, false, changes_tiles);
  plan.tensors.clear();
  for (const PlannedTensor& planned : whole.tensors) {
    std::string_view fqn = checkpoint.fqn(planned.tensor);
    bool had_tiles = tiles_off.contains(fqn) || tiles_on.contains(fqn);
    SHW_TRY(auto stays, remaining_tensor_plan(checkpoint, planned, tiles_off.contains(fqn),
                                              had_tiles, names_off.contains(fqn)));
    if (stays) plan.tensors.push_back(std::move(*stays));
  }
  auto fqn_of = [&](std::size_t object) -> std::string_view {
    return checkpoint.objects()[object].fqn;
  };
  std::erase_if(plan.objects, [&](const RenamedObject& renamed) {
    return names_off.contains(fqn_of(renamed.object));
  });
  std::erase_if(plan.entries, [&](const PlannedEntry& entry) {
    return tiles_off.contains(fqn_of(entry.object)) || names_off.contains(fqn_of(entry.object));
  });
  return {};
}

bool has_subject_in(const Finding& finding, const Names& subjects) {
  return std::any_of(finding.subjects.begin(), finding.subjects.end(),
                     [&](const std::string& subject) { return subjects.contains(subject); });
}

void leave(Plan& plan, Finding finding, const std::string& why) {
  finding.evidence.emplace_back("not_repaired_because", why);
  plan.undecided.push_back(std::move(finding));
}

// True if a step that is off leaves a subject of the finding wrong.
bool is_left_unrepaired(const Finding& finding, const Plan& whole, const DisabledSteps& off) {
  for (std::size_t i = 0; i < off.size(); ++i) {
    if (!off[i]) continue;
    const Operation& operation = whole.operations[i];
    Names subjects(operation.subjects.begin(), operation.subjects.end());
    if (has_subject_in(finding, subjects) ||
        (is_rewrite(operation) && finding.rule == operation.rule))
      return true;
  }
  return false;
}

// Adds the findings that nothing repairs any more. The plan already has those that nothing could
// repair before.
void note_remaining_findings(const CheckReport* report, const Plan& whole, const DisabledSteps& off,
                             Plan& plan) {
  std::set<std::pair<std::string, std::vector<std::string>>> told;
  for (const Finding& finding : plan.undecided) told.insert({finding.rule, finding.subjects});
  for (const Finding& finding : report == nullptr ? std::vector<Finding>{} : report->findings) {
    if (finding.severity == Severity::kInfo || !is_left_unrepaired(finding, whole, off)) continue;
    if (told.insert({finding.rule, finding.subjects}).second)
      leave(plan, finding, "the step that repairs it is switched off");
  }
  for (std::size_t i = 0; i < off.size(); ++i) {
    const Operation& operation = whole.operations[i];
    const Names subjects(operation.subjects.begin(), operation.subjects.end());
    bool known = std::any_of(plan.undecided.begin(), plan.undecided.end(), [&](const Finding& one) {
      return one.rule == operation.rule && (has_subject_in(one, subjects) || subjects.empty());
    });
    if (!off[i] || operation.rule.empty() || known) continue;
    Finding finding{.rule = std::string(operation.rule), .subjects = operation.subjects};
    finding.cause = "This step is switched off: " + operation.text + ".";
    leave(plan, std::move(finding), "its step is switched off");
  }
}

void drop_operations(const Plan& whole, const DisabledSteps& off, Plan& plan) {
  plan.operations.clear();
  for (std::size_t i = 0; i < off.size(); ++i) {
    if (!off[i]) plan.operations.push_back(whole.operations[i]);
  }
  bool changes = !plan.tensors.empty() || !plan.entries.empty() || !plan.objects.empty();
  // A rewrite of the metadata only accompanies other changes, so it goes with the last of them.
  if (!changes)
    std::erase_if(plan.operations,
                  [](const Operation& one) { return is_rewrite(one) && one.rule.empty(); });
}

Error missing_step_error(const Error& error) {
  Error out = error;
  out.kind = ErrorKind::kUnsupported;
  out.message = "the other steps need the step that is switched off: " + error.message;
  out.place.file.clear();
  out.advice = "switch off the steps that depend on it too, or leave it on";
  return out;
}

}  // namespace

std::vector<std::size_t> inseparable_steps(const Plan& plan) {
  std::vector<std::size_t> first(plan.operations.size());
  std::iota(first.begin(), first.end(), std::size_t{0});
  std::map<std::string_view, std::size_t> changed_by;
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    if (!changes_tiles(plan.operations[i])) continue;
    for (const std::string& subject : plan.operations[i].subjects) {
      auto [found, is_new] = changed_by.try_emplace(subject, first[i]);
      if (is_new || found->second == first[i]) continue;
      std::size_t from = std::max(found->second, first[i]), to = std::min(found->second, first[i]);
      std::replace(first.begin(), first.end(), from, to);
      for (auto& [name, by] : changed_by) by = by == from ? to : by;
    }
  }
  return first;
}

Result<DisabledSteps> switch_step(const Plan& plan, DisabledSteps off, std::size_t step, bool on) {
  off.resize(plan.operations.size(), false);
  if (step >= plan.operations.size())
    return fail(ErrorKind::kUsage, fmt::format("the plan has {} steps", plan.operations.size()));
  bool others = false;
  for (std::size_t i = 0; i < off.size(); ++i)
    others = others || (!off[i] && !is_rewrite(plan.operations[i]));
  if (!on && others && is_rewrite(plan.operations[step]))
    return fail(ErrorKind::kUsage, "every repair does this; it is off only if all other steps are",
                {}, "switch the other steps off first");
  std::vector<std::size_t> together = inseparable_steps(plan);
  for (std::size_t i = 0; i < off.size(); ++i) {
    if (together[i] == together[step]) off[i] = !on;
    // The rewrite of the metadata accompanies every step that is on.
    if (on && is_rewrite(plan.operations[i])) off[i] = false;
  }
  return off;
}

Result<Plan> plan_without_steps(const Checkpoint& checkpoint, const CheckReport* report,
                                const Plan& whole, const DisabledSteps& off) {
  if (off.size() != whole.operations.size())
    return fail(ErrorKind::kUsage, "the steps belong to a different plan");
  if (std::none_of(off.begin(), off.end(), [](bool one) { return one; })) return whole;
  Plan plan = whole;
  SHW_CHECK(drop_tensors(checkpoint, whole, off, plan));
  drop_operations(whole, off, plan);
  note_remaining_findings(report, whole, off, plan);
  plan.lossless = plan.of_other_ranks.empty() && keeps_every_entry(plan) &&
                  std::all_of(plan.tensors.begin(), plan.tensors.end(),
                              [](const auto& t) { return t.lost_elements == 0; });
  // Must pass the same proofs as a plan that was edited by hand.
  auto proved = plan_from_json(checkpoint, plan_to_json(checkpoint, plan), "the plan");
  if (!proved) return tl::unexpected<Error>(missing_step_error(proved.error()));
  return plan;
}

}  // namespace shw
