// Experts that a converter numbered from 1, where every program counts from 0.
#pragma once

#include <optional>
#include <vector>

#include "core/model/diagnosis.h"
#include "core/transform/steps.h"

namespace shw::verbs {

struct RenumberedExperts {
  std::vector<Diagnosis> renames;  // Renamed: to the number before
  std::vector<Step> steps;         // that do the same
};
// Nothing unless all experts of the checkpoint are numbered from 1 on without gaps.
std::optional<RenumberedExperts> experts_numbered_from_one(const Checkpoint& checkpoint);

}  // namespace shw::verbs
