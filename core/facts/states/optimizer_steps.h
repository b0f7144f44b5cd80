// Steps that cannot be: held against the moments that they are saved beside.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/facts/states/moment_pairs.h"
#include "core/facts/states/optimizer_settings.h"
#include "core/facts/values/value_reader.h"

namespace shw {

enum class StepVerdict : std::uint8_t { kFits, kImpossible, kUnknown };

// How the moments of one parameter look after `step` steps; nothing: never stepped. Exact:
//   after no step both moments are zero;
//   after one, m = (1 - beta1) g and v = (1 - beta2) g^2, so m^2 / v is one number everywhere;
//   after t, m^2 <= v (1 - beta1)^2 / (1 - beta2) * sum over i < t of (beta1^2 / beta2)^i.
StepVerdict judge_step(const TensorValues& mean, const TensorValues& square,
                       std::optional<double> step, const std::optional<Betas>& betas);

struct WrongStep {
  const SavedStep* step = nullptr;
  std::string why;  // "the moments of layers.0.weight", "the reference has 50 there"
};
struct StepCheck {
  std::optional<double> latest;  // the largest step, of those that are not far ahead of most
  bool others_agree = true;      // every step that is not wrong is the latest
  // Of the steps kept by parameter at most a quarter are wrong: where more seem to be, numbers were
  // made up, or this is another optimizer.
  bool is_exception = true;
  std::vector<WrongStep> wrong;
  std::vector<const SavedStep*> unknown;    // behind by far, and nothing decides
  std::vector<const SavedStep*> ahead;      // of most others, by far, and nothing decides
  bool no_counts = false;                   // some of the wrong ones are no numbers to count with
  const SavedStep* tensor_donor = nullptr;  // entries that hold the latest step
  const SavedStep* object_donor = nullptr;
};
// `earlier`: the same optimizer in the reference, null without. Where the moments do not tell, a
// step that went back while the latest did not is wrong, and so is one that stood with the latest
// there and is far ahead of it now.
StepCheck check_steps(const CheckInput& input, const SavedOptimizer& optimizer,
                      const SavedOptimizer* earlier, const std::vector<MomentPair>& pairs,
                      ValueBudget& budget);

}  // namespace shw
