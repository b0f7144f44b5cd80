#include "core/rules/values/coarse_steps.h"

#include <fmt/core.h>

#include <cmath>
#include <map>
#include <optional>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// The largest number up to which the dtype holds every whole number.
std::optional<double> last_exact_count(Dtype dtype) {
  if (dtype == Dtype::kBfloat16) return 256;
  if (dtype == Dtype::kFloat16) return 2048;
  return std::nullopt;
}

struct CoarseSteps {
  std::vector<std::string> names;
  double largest = 0;
};

}  // namespace

void report_coarse_steps(const Facts& facts, const SavedOptimizer& optimizer,
                         std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  std::map<Dtype, CoarseSteps> by_dtype;
  auto add = [&](const SavedStep& step) {
    if (!step.tensor || !step.step) return;
    const auto exact = last_exact_count(c.dtype(*step.tensor));
    if (!exact || !std::isfinite(*step.step) || *step.step < *exact) return;
    CoarseSteps& coarse = by_dtype[c.dtype(*step.tensor)];
    coarse.names.push_back(step.fqn);
    coarse.largest = std::max(coarse.largest, *step.step);
  };
  for (const auto& [key, step] : optimizer.steps) add(step);
  for (const ParamGroup& group : optimizer.groups)
    if (group.step) add(*group.step);
  for (const auto& [dtype, coarse] : by_dtype) {
    const double exact = *last_exact_count(dtype);
    // The distance between neighbouring numbers of the dtype.
    const double apart = std::exp2(std::floor(std::log2(coarse.largest / exact)) + 1);
    Finding finding{.rule = std::string(kOptimizerGroups.id), .severity = Severity::kWarning};
    finding.subjects = coarse.names;
    finding.cause = fmt::format(
        "{} of the optimizer {} saved in {}, which holds every count only up to {:.0f}: at {:.0f} "
        "its numbers are {:.0f} apart, so the exact count is unknown. Unless they are fused or "
        "capturable, torch's optimizers keep the dtype of a loaded step. Adding 1 then changes "
        "nothing: the count no longer grows, and Adam's bias correction uses the wrong step.",
        plural(coarse.names.size(), "step"), coarse.names.size() == 1 ? "is" : "are", name(dtype),
        exact, coarse.largest, apart);
    finding.link = "speculators #899";
    finding.evidence = {
        {"dtype", std::string(name(dtype))},
        {"latest_step", coarse.largest},
        {"count", count_of(coarse.names.size())},
        {"what_to_do",
         std::string(
             "no safe remedy: the count is not in this file. After loading, set each step to "
             "the trainer's own count as float32, and save the optimizer without a cast. "
             "Moments that were cast as well lost digits but can be used")}};
    findings.push_back(std::move(finding));
  }
}

}  // namespace shw
