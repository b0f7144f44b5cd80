// How a plan comes to be: from what was found, or from JSON.
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

// What the person chose for elements that are lost. Lost they stay, whatever is put there.
enum class FillChoice : std::uint8_t {
  kDefault,    // as kCast
  kZero,       // zeros everywhere
  kCast,       // masters from the model's weights, zeros elsewhere
  kReference,  // the same elements of `fill_source`, as kCast where it has none
};
struct PlanOptions {
  std::optional<Mesh> mesh;
  std::shared_ptr<const Spec> spec;
  FillChoice fill = FillChoice::kDefault;
  std::shared_ptr<const Checkpoint> fill_source = nullptr;
};

// "zero", "cast", "from:CHECKPOINT" (which is opened); empty: the default. A usage error otherwise.
Status choose_fill(std::string_view text, PlanOptions& options, Progress* progress = nullptr);

// From findings to plan. Two findings on one tensor: the explaining one wins.
Result<Plan> make_plan(const Checkpoint& checkpoint, const CheckReport& report,
                       const PlanOptions& options, const Progress* progress = nullptr);

std::string plan_to_json(const Checkpoint& checkpoint, const Plan& plan);
// Of what it does, wherever the checkpoint lies: "hash" of its JSON.
std::string plan_hash(const Checkpoint& checkpoint, const Plan& plan);
// Refuses a plan that was made for another checkpoint (other shapes, chunks or items). `folder`:
// where relative paths of its inputs begin.
Result<Plan> plan_from_json(const Checkpoint& checkpoint, std::string_view json,
                            const std::string& source, const std::string& folder = {});

// The same of a plan of steps alone, which may be for any checkpoint.
std::string plan_to_json(const Plan& plan);
std::string plan_hash(const Plan& plan);
Result<Plan> plan_from_json(std::string_view json, const std::string& source);

}  // namespace shw
