// The edit history of a plan as immutable values, so that undo and redo only move an
// index.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/repair/plan/plan_without.h"
#include "core/verbs/transforms.h"
#include "core/verbs/verbs.h"

namespace shw {

inline constexpr std::size_t kKeptEdits = 100;
inline constexpr std::size_t kEditableBytes = 64 * 1024;  // limit of a plan's text in the window

struct PlanEdit {
  std::string what;                   // "step 2 off: relabel 64 tiles"
  std::shared_ptr<const Plan> whole;  // with all steps
  DisabledSteps off;                  // by step of `whole`
  std::shared_ptr<const Plan> plan;   // without switched-off steps: the plan to execute
  std::optional<Error> not_in_place;  // why it cannot be executed in place
  std::string fill;                   // VerbOptions::fill
  std::string file = {};              // file with exactly this plan; empty: none
  std::string hash = {};
  std::string json = {};  // for the text editor; empty if too long
  // The estimate for a plan with steps, which writes another form; null if the plan only repairs.
  std::shared_ptr<const verbs::StepsEstimate> written = nullptr;
  std::vector<std::string> notes = {};  // what is dropped, cast or kept, one line each
  std::string suffix = "-repaired";     // of the result's default name
  std::size_t changed_tensors = 0;      // by repairs
};

// All edits and the current one; never empty.
struct PlanEdits {
  std::vector<std::shared_ptr<const PlanEdit>> all;
  std::size_t now = 0;
  const PlanEdit& edit() const { return *all[now]; }
  bool can_undo() const { return now > 0; }
  bool can_redo() const { return now + 1 < all.size(); }
};

// Number of tensors that repairs change, including those whose lost elements are filled.
std::size_t changed_tensors(const Plan& plan);

// `report`: the basis of the plan; null for plans from elsewhere.
Result<PlanEdit> make_edit(const verbs::Opened& opened, const CheckReport* report,
                           std::shared_ptr<const Plan> whole, DisabledSteps off, std::string what);
// Appends after `before` (may be null) and drops the edits that could be redone.
std::shared_ptr<const PlanEdits> with_edit(const PlanEdits* before, PlanEdit edit);
// Marks the current edit as saved to a file.
std::shared_ptr<const PlanEdits> with_file(const PlanEdits& edits, const std::string& file);

// Steps of `plan` that equal steps switched off in `before`.
DisabledSteps steps_off_in_new_plan(const PlanEdit& before, const Plan& plan);

}  // namespace shw
