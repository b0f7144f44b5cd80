// Makes a plan from findings or reads it from JSON.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/repair/plan/plan_types.h"
#include "core/rules/check.h"

namespace shw {

// The user's choice for lost elements. They stay lost, whatever fills their place.
enum class FillChoice : std::uint8_t {
  kDefault,    // same as kCast
  kZero,       // zeros everywhere
  kCast,       // masters from the model's weights, zeros elsewhere
  kReference,  // the same elements of `fill_source`; kCast for elements that it lacks
};
struct PlanOptions {
  std::optional<Mesh> mesh;
  std::shared_ptr<const Spec> spec;
  FillChoice fill = FillChoice::kDefault;
  std::shared_ptr<const Checkpoint> fill_source = nullptr;
};

// Parses "zero", "cast" or "from:CHECKPOINT" (which is opened); empty means the default. Anything
// else is a usage error.
Status choose_fill(std::string_view text, PlanOptions& options, Progress* progress = nullptr);

// Makes a plan from findings. If two findings affect one tensor, the explaining finding wins.
Result<Plan> make_plan(const Checkpoint& checkpoint, const CheckReport& report,
                       const PlanOptions& options, const Progress* progress = nullptr);

std::string plan_to_json(const Checkpoint& checkpoint, const Plan& plan);
// XXH3 of what the plan does, independent of the checkpoint's path: "hash" of its JSON.
std::string plan_hash(const Checkpoint& checkpoint, const Plan& plan);
// Refuses a plan that was made for another checkpoint (other shapes, chunks or items). Relative
// paths of its inputs start at `folder`.
Result<Plan> plan_from_json(const Checkpoint& checkpoint, std::string_view json,
                            const std::string& source, const std::string& folder = {});

// JSON and hash of a plan that has only steps, which fits any checkpoint.
std::string plan_to_json(const Plan& plan);
std::string plan_hash(const Plan& plan);
Result<Plan> plan_from_json(std::string_view json, const std::string& source);

}  // namespace shw
