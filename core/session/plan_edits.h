// What a person has made of a plan, edit by edit: immutable values, so that undo and redo only look
// at another one.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/repair/plan/plan_without.h"
#include "core/verbs/verbs.h"

namespace shw {

inline constexpr std::size_t kKeptEdits = 100;
inline constexpr std::size_t kEditableBytes = 64 * 1024;  // of a plan's text in the window

struct PlanEdit {
  std::string what;                   // "step 2 off: relabel 64 tiles"
  std::shared_ptr<const Plan> whole;  // with all its steps
  StepsOff off;                       // by step of it
  std::shared_ptr<const Plan> plan;   // without those: what is carried out
  std::optional<Error> not_in_place;  // why that cannot be done in place
  std::string fill;                   // VerbOptions::fill
  std::string file = {};              // where this very plan is saved; empty: nowhere
  std::string hash = {};
  std::string json = {};  // for the window; empty where it is too long to be edited there
};

// The one that stands, and those around it. Never empty.
struct PlanEdits {
  std::vector<std::shared_ptr<const PlanEdit>> all;
  std::size_t now = 0;
  const PlanEdit& edit() const { return *all[now]; }
  bool can_undo() const { return now > 0; }
  bool can_redo() const { return now + 1 < all.size(); }
};

// `report`: what the plan was made of; null for one from elsewhere.
Result<PlanEdit> make_edit(const verbs::Opened& opened, const CheckReport* report,
                           std::shared_ptr<const Plan> whole, StepsOff off, std::string what);
// After `before` (null: none), what could be redone is gone.
std::shared_ptr<const PlanEdits> with_edit(const PlanEdits* before, PlanEdit edit);
// The one that stands is saved there.
std::shared_ptr<const PlanEdits> with_file(const PlanEdits& edits, const std::string& file);

// Steps of `plan` that are the same as ones that are off in `before`.
StepsOff same_steps_off(const PlanEdit& before, const Plan& plan);

}  // namespace shw
