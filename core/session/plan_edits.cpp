#include "core/session/plan_edits.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "core/base/run_limits.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/in_place.h"

namespace shw {
namespace {

std::size_t tiles_of(const Plan& plan) {
  std::size_t tiles = 0;
  for (const PlannedTensor& tensor : plan.tensors) tiles += tensor.chunks.size();
  return tiles;
}

}  // namespace

std::size_t changed_tensors(const Plan& plan) {
  std::set<std::string_view> filled;
  for (const Step& step : plan.steps) {
    if (const auto* fill = std::get_if<FillStep>(&step))
      filled.insert(fill->tensors.begin(), fill->tensors.end());
  }
  return plan.tensors.size() + filled.size();
}

Result<PlanEdit> make_edit(const verbs::Opened& opened, const CheckReport* report,
                           std::shared_ptr<const Plan> whole, DisabledSteps off, std::string what) {
  PlanEdit edit;
  edit.what = std::move(what);
  SHW_TRY(Plan plan, plan_without_steps(*opened.checkpoint, report, *whole, off));
  if (auto possible = check_in_place(*opened.checkpoint, plan); !possible)
    edit.not_in_place = possible.error();
  if (plan.transforms()) {
    SHW_TRY(auto written, verbs::estimate_steps(opened, plan, kDefaultMemory, nullptr));
    edit.written = std::make_shared<const verbs::StepsEstimate>(std::move(written));
    if (!plan.repairs()) edit.suffix = plan.format.empty() ? "-changed" : "-" + plan.format;
  }
  edit.hash = plan_hash(*opened.checkpoint, plan);
  // A tile takes at least 100 bytes of text.
  if (tiles_of(plan) * 100 < kEditableBytes) {
    edit.json = plan_to_json(*opened.checkpoint, plan);
    if (edit.json.size() > kEditableBytes) edit.json.clear();
  }
  edit.changed_tensors = changed_tensors(plan);
  edit.whole = std::move(whole);
  edit.off = std::move(off);
  edit.plan = std::make_shared<const Plan>(std::move(plan));
  return edit;
}

std::shared_ptr<const PlanEdits> with_edit(const PlanEdits* before, PlanEdit edit) {
  auto edits = std::make_shared<PlanEdits>();
  if (before != nullptr) {
    auto end = before->all.begin() + static_cast<std::ptrdiff_t>(before->now) + 1;
    auto begin = before->now + 1 < kKeptEdits ? before->all.begin() : before->all.begin() + 1;
    edits->all.assign(begin, end);
  }
  edits->all.push_back(std::make_shared<const PlanEdit>(std::move(edit)));
  edits->now = edits->all.size() - 1;
  return edits;
}

std::shared_ptr<const PlanEdits> with_file(const PlanEdits& edits, const std::string& file) {
  auto saved = std::make_shared<PlanEdits>(edits);
  PlanEdit edit = edits.edit();
  edit.file = file;
  saved->all[saved->now] = std::make_shared<const PlanEdit>(std::move(edit));
  return saved;
}

DisabledSteps steps_off_in_new_plan(const PlanEdit& before, const Plan& plan) {
  using StepKey = std::tuple<OperationKind, std::string, std::vector<std::string>>;
  std::set<StepKey> off;
  for (std::size_t i = 0; i < before.off.size(); ++i) {
    const Operation& step = before.whole->operations[i];
    if (before.off[i]) off.insert({step.kind, step.rule, step.subjects});
  }
  DisabledSteps out;
  for (const Operation& step : plan.operations)
    out.push_back(off.contains({step.kind, step.rule, step.subjects}));
  std::vector<std::size_t> together = inseparable_steps(plan);
  for (std::size_t i = 0; i < out.size(); ++i) {  // dependent steps are switched together
    for (std::size_t j = 0; j < out.size(); ++j) {
      if (out[i] && together[i] == together[j]) out[j] = true;
    }
  }
  return out;
}

}  // namespace shw
