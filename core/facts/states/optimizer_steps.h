// Checks step counters against the moments saved with them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/facts/states/moment_pairs.h"
#include "core/facts/states/optimizer_settings.h"
#include "core/facts/values/value_reader.h"

namespace shw {

enum class StepVerdict : std::uint8_t { kFits, kImpossible, kUnknown };

// Compares the moments of one parameter with `step` (nullopt: never stepped). Exact invariants:
//   after no step both moments are zero;
//   after one step m^2 / v is one constant, because m = (1 - beta1) g and v = (1 - beta2) g^2;
//   after t steps m^2 <= v (1 - beta1)^2 / (1 - beta2) * sum over i < t of (beta1^2 / beta2)^i.
StepVerdict check_step(const TensorValues& mean, const TensorValues& square,
                       std::optional<double> step, const std::optional<Betas>& betas);

struct WrongStep {
  const SavedStep* step = nullptr;
  std::string why;  // evidence: "the moments of layers.0.weight", "the reference has 50 there"
};
struct StepCheck {
  std::optional<double> latest;       // the largest step that is not far ahead of most
  bool are_other_steps_equal = true;  // all steps that are not wrong equal `latest`
  // At most a quarter of the steps per parameter are wrong. If more seem wrong, the numbers are
  // synthetic or the optimizer is unknown.
  bool is_exception = true;
  std::vector<WrongStep> wrong;
  std::vector<const SavedStep*> unknown;               // far behind, without evidence
  std::vector<const SavedStep*> ahead;                 // far ahead of most others, without evidence
  bool has_invalid_counts = false;                     // some wrong steps are not valid numbers
  const SavedStep* tensor_with_latest_step = nullptr;  // an entry that holds the latest step
  const SavedStep* object_with_latest_step = nullptr;
};
// `earlier`: the same optimizer in the reference, may be null. If the moments do not decide, a step
// is wrong if it decreased while the latest did not, or if it equalled the latest in the reference
// and is far ahead of it now.
StepCheck check_steps(const CheckInput& input, const SavedOptimizer& optimizer,
                      const SavedOptimizer* earlier, const std::vector<MomentPair>& pairs,
                      ValueBudget& budget);

}  // namespace shw
