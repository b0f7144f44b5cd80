// Team policies: requirements on every checkpoint, listed in a file; each is met, broken or
// undecided.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/base/team.h"
#include "core/model/checkpoint.h"

namespace shw {

// Names of the policies:
//   coverage            each element of each tensor is in exactly one tile, and its bytes exist
//   finite              no NaN and no infinity in any float tensor; undecided without --data
//   optimizer-complete  each trained parameter has all states that its optimizer keeps; undecided
//                       if it is unknown which are trained, or which states are kept
//
// A policy is never met if a file or record could not be opened.
inline constexpr std::string_view kPolicies[] = {"coverage", "finite", "optimizer-complete"};

enum class PolicyVerdict : std::uint8_t { kMet, kBroken, kUndecided };
std::string_view name(PolicyVerdict verdict);  // "met", "broken", "undecided"

struct PolicyAnswer {
  std::string require;
  PolicyVerdict verdict = PolicyVerdict::kUndecided;
  std::string why;                    // one sentence
  std::vector<std::string> subjects;  // what breaks the policy or leaves it undecided
};

// `required`: names from kPolicies. `data`: may read tensor data.
Result<std::vector<PolicyAnswer>> evaluate_policies(const Checkpoint& checkpoint,
                                                    std::span<const std::string> required,
                                                    bool data, Progress* progress,
                                                    Team* team = nullptr);

}  // namespace shw
