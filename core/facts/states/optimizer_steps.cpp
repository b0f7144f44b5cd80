#include "core/facts/states/optimizer_steps.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace shw {
namespace {

// Below this the square of the gradient underflows float.
constexpr double kMinSquarableGradient = 1e-12;
constexpr std::int64_t kEnough = 8;      // minimum number of elements
constexpr std::size_t kMaxJudged = 256;  // steps, with up to kMaxPairs parameters each
constexpr std::size_t kMaxPairs = 4;
constexpr double kBehindByFar = 10;
constexpr double kAheadByFar = 10;  // times the step of most others

struct Seen {
  std::int64_t said = 0;  // elements with both moments non-zero
  std::int64_t nonzero = 0, above = 0, unlike = 0;
};

// The part of the moment bound that `step` steps can reach.
double moment_bound_after(double step, const Betas& betas) {
  double ratio = betas.first * betas.first / betas.second;
  double sum = ratio == 1 ? step : (1 - std::pow(ratio, step)) / (1 - ratio);
  return (1 - betas.first) * (1 - betas.first) / (1 - betas.second) * sum;
}

double median_ratio(const TensorValues& mean, const TensorValues& square) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < count_in(mean); ++i) {
    double m = value_at(mean.dtype, mean.bytes, i), v = value_at(square.dtype, square.bytes, i);
    if (std::abs(m) > kMinSquarableGradient && v > 0 && std::isfinite(v))
      ratios.push_back(m * m / v);
  }
  if (ratios.empty()) return 0;
  auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle;
}

struct StepOfParameters {
  const SavedStep* step = nullptr;
  const ParamGroup* group = nullptr;     // the group with this step
  std::string key;                       // or the parameter's key
  bool maps = true;                      // false: parameters are named differently
  std::vector<const MomentPair*> pairs;  // of the covered parameters, small ones first
};

std::vector<StepOfParameters> steps_of(const Checkpoint& c, const SavedOptimizer& optimizer,
                                       const std::vector<MomentPair>& pairs) {
  std::map<std::string_view, const MomentPair*> by_key;
  for (const MomentPair& pair : pairs) {
    if (pair.prefix == optimizer.prefix && volume(c.shape(pair.mean)).value_or(0) > 0)
      by_key[pair.key] = &pair;
  }
  std::vector<StepOfParameters> out;
  auto add = [&](StepOfParameters& covered, const std::string& key) {
    if (auto found = by_key.find(key); found != by_key.end())
      covered.pairs.push_back(found->second);
  };
  for (const auto& [key, step] : optimizer.steps) {
    StepOfParameters covered{&step, nullptr, key, true, {}};
    add(covered, key);
    out.push_back(std::move(covered));
  }
  // Indices in the lists but names in the states: they cannot be matched.
  bool maps = std::any_of(by_key.begin(), by_key.end(), [&](const auto& known) {
    return optimizer.group_of.contains(std::string(known.first));
  });
  for (const ParamGroup& group : optimizer.groups) {
    if (!group.step) continue;
    StepOfParameters covered{&*group.step, &group, "", maps || group.params.empty(), {}};
    for (const std::string& param : group.params) add(covered, param);
    out.push_back(std::move(covered));
  }
  for (StepOfParameters& covered : out) {
    std::stable_sort(covered.pairs.begin(), covered.pairs.end(), [&](auto* a, auto* b) {
      return volume(c.shape(a->mean)) < volume(c.shape(b->mean));
    });
    if (covered.pairs.size() > kMaxPairs) covered.pairs.resize(kMaxPairs);
  }
  return out;
}

bool is_half_precision(const Checkpoint& c, const MomentPair& pair) {
  return c.dtype(pair.mean) == Dtype::kFloat16 || c.dtype(pair.square) == Dtype::kFloat16;
}

StepVerdict check_step(const CheckInput& input, const SavedOptimizer& optimizer,
                       const StepOfParameters& covered, ValueBudget& budget, std::string& why) {
  bool nothing_to_say = covered.pairs.empty() && covered.maps;
  StepVerdict verdict = nothing_to_say ? StepVerdict::kFits : StepVerdict::kUnknown;
  for (const MomentPair* pair : covered.pairs) {
    // Half precision loses small squares and is often scaled.
    if (is_half_precision(input.checkpoint, *pair)) continue;
    auto mean = read_values(input, pair->mean, budget);
    auto square = mean ? read_values(input, pair->square, budget) : std::nullopt;
    if (!mean || !square) continue;
    StepVerdict one =
        check_step(*mean, *square, covered.step->step, betas_of(optimizer, pair->key));
    if (one == StepVerdict::kImpossible) {
      why = "the moments of " + pair->key;
      return one;
    }
    if (one == StepVerdict::kFits) verdict = one;
  }
  return verdict;
}

std::optional<double> latest_step_of_optimizer(const SavedOptimizer& optimizer) {
  std::optional<double> latest;
  auto add = [&](const SavedStep& step) {
    if (step.step && std::isfinite(*step.step) && (!latest || *step.step > *latest))
      latest = step.step;
  };
  for (const auto& [key, step] : optimizer.steps) add(step);
  for (const ParamGroup& group : optimizer.groups) {
    if (group.step) add(*group.step);
  }
  return latest;
}

// The step of these parameters in the reference.
std::optional<double> step_in_reference(const StepOfParameters& covered,
                                        const SavedOptimizer& earlier) {
  if (covered.group == nullptr) {
    auto found = earlier.steps.find(covered.key);
    return found == earlier.steps.end() ? std::nullopt : found->second.step;
  }
  for (const ParamGroup& group : earlier.groups) {
    bool same_group = group.name == covered.group->name && group.params == covered.group->params;
    if (same_group && group.step) return group.step->step;
  }
  return std::nullopt;
}

// NaN, infinity and negative numbers are not counts.
bool is_count(const SavedStep& step) {
  return !step.step || (std::isfinite(*step.step) && *step.step >= 0);
}

// The step of at least three quarters of four or more steps; nullopt otherwise. Requires sorted
// input.
std::optional<double> majority_step(const std::vector<StepOfParameters>& steps) {
  std::vector<double> counts;
  for (const StepOfParameters& covered : steps) {
    if (is_count(*covered.step) && covered.step->step) counts.push_back(*covered.step->step);
  }
  if (counts.size() < 4) return std::nullopt;
  double middle = counts[counts.size() / 2];
  auto [first, last] = std::equal_range(counts.begin(), counts.end(), middle);
  bool most = static_cast<std::size_t>(last - first) * 4 >= counts.size() * 3;
  return most && middle >= 2 ? std::optional(middle) : std::nullopt;
}

std::string step_number_text(double step) {
  PlainValue value;
  value.kind = PlainValue::Kind::kNumber;
  value.number = step;
  return to_text(value);
}

// True if the step advanced tenfold relative to the steps that it equalled.
bool has_implausible_advance(const StepOfParameters& covered, const SavedOptimizer* earlier,
                             double most, std::string& why) {
  auto then = earlier != nullptr ? step_in_reference(covered, *earlier) : std::nullopt;
  if (!then || then != latest_step_of_optimizer(*earlier) || *then > most) return false;
  why = "the reference, where it has " + step_number_text(*then) + " as the latest of the others";
  return true;
}

// True if the step decreased while others did not.
bool step_decreased(const StepOfParameters& covered, const SavedOptimizer* earlier, double latest,
                    std::string& why) {
  auto then = earlier != nullptr ? step_in_reference(covered, *earlier) : std::nullopt;
  auto latest_then = then ? latest_step_of_optimizer(*earlier) : std::nullopt;
  if (!latest_then || *latest_then > latest || covered.step->step.value_or(0) >= *then)
    return false;
  why = "the reference, which has " + step_number_text(*then) + " there";
  return true;
}

}  // namespace

StepVerdict check_step(const TensorValues& mean, const TensorValues& square,
                       std::optional<double> step, const std::optional<Betas>& betas) {
  double taken = step.value_or(0);
  bool narrow = mean.dtype == Dtype::kBfloat16 || square.dtype == Dtype::kBfloat16;
  double slack = narrow ? 0.05 : 0.02;
  double ratio = taken == 1 ? median_ratio(mean, square) : 0;
  double most = betas && taken >= 1 ? moment_bound_after(taken, *betas) : 0;
  Seen seen;
  for (std::size_t i = 0; i < count_in(mean); ++i) {
    double m = value_at(mean.dtype, mean.bytes, i), v = value_at(square.dtype, square.bytes, i);
    if (!std::isfinite(m) || !std::isfinite(v)) continue;
    if (m != 0 || v != 0) ++seen.nonzero;
    if (std::abs(m) <= kMinSquarableGradient || v <= 0) continue;
    ++seen.said;
    if (std::abs(m * m / v - ratio) > slack * ratio) ++seen.unlike;
    if (m * m > most * v * (1 + slack)) ++seen.above;
  }
  if (taken < 1) return seen.nonzero > 0 ? StepVerdict::kImpossible : StepVerdict::kFits;
  if (seen.nonzero == 0) return StepVerdict::kFits;
  if (seen.said < kEnough) return StepVerdict::kUnknown;
  if (taken == 1 && seen.unlike * 100 > seen.said) return StepVerdict::kImpossible;
  if (taken != 1 && betas && seen.above > 0) return StepVerdict::kImpossible;
  return taken == 1 ? StepVerdict::kFits : StepVerdict::kUnknown;
}

namespace {

StepVerdict verdict_of(const CheckInput& input, const SavedOptimizer& optimizer,
                       const SavedOptimizer* earlier, const StepOfParameters& covered,
                       double latest, std::size_t& judged, ValueBudget& budget, std::string& why) {
  StepVerdict verdict = judged++ < kMaxJudged ? check_step(input, optimizer, covered, budget, why)
                                              : StepVerdict::kUnknown;
  if (verdict == StepVerdict::kUnknown && step_decreased(covered, earlier, latest, why))
    verdict = StepVerdict::kImpossible;
  return verdict;
}

// Removes steps that are wrong without comparing moments: invalid numbers, and steps far ahead of
// most. Returns how many wrong ones are per parameter.
std::int64_t remove_implausible_steps(std::vector<StepOfParameters>& steps,
                                      const SavedOptimizer* earlier, StepCheck& out) {
  std::optional<double> most = majority_step(steps);
  bool ahead = most && *out.latest > *most * kAheadByFar;
  std::int64_t wrong = 0;
  auto is_wrong = [&](const StepOfParameters& covered, std::string why) {
    out.wrong.push_back({covered.step, std::move(why)});
    wrong += covered.group == nullptr ? 1 : 0;
  };
  std::erase_if(steps, [&](const StepOfParameters& covered) {
    const SavedStep& step = *covered.step;
    std::string why;
    if (!is_count(step)) {
      is_wrong(covered, "what a step is, a count of updates");
      out.has_invalid_counts = true;
      return true;
    }
    if (!ahead || step.step.value_or(0) <= *most * kAheadByFar) return false;
    if (has_implausible_advance(covered, earlier, *most, why))
      is_wrong(covered, std::move(why));
    else
      out.ahead.push_back(&step);
    return true;
  });
  if (ahead) out.latest = most;
  if (!out.ahead.empty()) out.are_other_steps_equal = false;
  return wrong;
}

}  // namespace

StepCheck check_steps(const CheckInput& input, const SavedOptimizer& optimizer,
                      const SavedOptimizer* earlier, const std::vector<MomentPair>& pairs,
                      ValueBudget& budget) {
  StepCheck out;
  out.latest = latest_step_of_optimizer(optimizer);
  std::vector<StepOfParameters> steps = steps_of(input.checkpoint, optimizer, pairs);
  std::stable_sort(
      steps.begin(), steps.end(), [](const StepOfParameters& a, const StepOfParameters& b) {
        return std::pair(is_count(*a.step), is_count(*a.step) ? a.step->step.value_or(0) : 0) <
               std::pair(is_count(*b.step), is_count(*b.step) ? b.step->step.value_or(0) : 0);
      });
  // Counts of steps per parameter.
  std::int64_t wrong = remove_implausible_steps(steps, earlier, out), right = 0;
  // Compares counters with the moments only from step 2 on, because at step 0 or 1 no counter can
  // lag behind.
  const bool compared = out.latest && *out.latest >= 2;
  std::size_t judged = 0;
  for (const StepOfParameters& covered : steps) {
    const SavedStep& step = *covered.step;
    std::int64_t by_parameter = covered.group == nullptr ? 1 : 0;
    if (out.latest && step.step == out.latest) {
      right += by_parameter;
      if (step.tensor && out.tensor_with_latest_step == nullptr)
        out.tensor_with_latest_step = &step;
      if (step.object && out.object_with_latest_step == nullptr)
        out.object_with_latest_step = &step;
      continue;
    }
    if (!compared) continue;
    std::string why;
    StepVerdict verdict =
        verdict_of(input, optimizer, earlier, covered, *out.latest, judged, budget, why);
    if (verdict == StepVerdict::kImpossible) {
      out.wrong.push_back({&step, why});
      wrong += by_parameter;
      continue;
    }
    if (!covered.pairs.empty() || !covered.maps) out.are_other_steps_equal = false;
    bool far = step.step.value_or(0) <= 1 && *out.latest >= kBehindByFar;
    if (verdict == StepVerdict::kUnknown && far) out.unknown.push_back(&step);
  }
  out.is_exception = wrong * 3 <= right;
  return out;
}

}  // namespace shw
