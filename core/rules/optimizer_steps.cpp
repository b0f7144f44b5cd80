#include "core/rules/optimizer_steps.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace shw {
namespace {

// Below this the square of the gradient is lost in the smallest float.
constexpr double kSquareIsLost = 1e-12;
constexpr std::int64_t kEnough = 8;       // elements that say something
constexpr std::size_t kMostJudged = 256;  // steps; kMostPairs parameters each
constexpr std::size_t kMostPairs = 4;
constexpr double kBehindByFar = 10;

struct Seen {
  std::int64_t said = 0;  // elements with both moments
  std::int64_t nonzero = 0, above = 0, unlike = 0;
};

// The part of the bound of spec P15 that `step` steps can reach.
double constant_after(double step, const Betas& betas) {
  double ratio = betas.first * betas.first / betas.second;
  double sum = ratio == 1 ? step : (1 - std::pow(ratio, step)) / (1 - ratio);
  return (1 - betas.first) * (1 - betas.first) / (1 - betas.second) * sum;
}

double median_ratio(const TensorValues& mean, const TensorValues& square) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < count_in(mean); ++i) {
    double m = value_at(mean.dtype, mean.bytes, i), v = value_at(square.dtype, square.bytes, i);
    if (std::abs(m) > kSquareIsLost && v > 0 && std::isfinite(v)) ratios.push_back(m * m / v);
  }
  if (ratios.empty()) return 0;
  auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle;
}

struct Covered {
  const SavedStep* step = nullptr;
  std::vector<const MomentPair*> pairs;  // of the parameters that it counts for, small ones first
};

std::vector<Covered> steps_of(const Checkpoint& c, const SavedOptimizer& optimizer,
                              const std::vector<MomentPair>& pairs) {
  std::map<std::string_view, const MomentPair*> by_key;
  for (const MomentPair& pair : pairs) {
    if (pair.prefix == optimizer.prefix && volume(c.shape(pair.mean)).value_or(0) > 0)
      by_key[pair.key] = &pair;
  }
  std::vector<Covered> out;
  auto add = [&](Covered& covered, const std::string& key) {
    if (auto found = by_key.find(key); found != by_key.end())
      covered.pairs.push_back(found->second);
  };
  for (const auto& [key, step] : optimizer.steps) {
    Covered covered{&step, {}};
    add(covered, key);
    out.push_back(std::move(covered));
  }
  for (const ParamGroup& group : optimizer.groups) {
    if (!group.step) continue;
    Covered covered{&*group.step, {}};
    for (const std::string& param : group.params) add(covered, param);
    out.push_back(std::move(covered));
  }
  for (Covered& covered : out) {
    std::stable_sort(covered.pairs.begin(), covered.pairs.end(), [&](auto* a, auto* b) {
      return volume(c.shape(a->mean)) < volume(c.shape(b->mean));
    });
    if (covered.pairs.size() > kMostPairs) covered.pairs.resize(kMostPairs);
  }
  return out;
}

bool is_half(const Checkpoint& c, const MomentPair& pair) {
  return c.dtype(pair.mean) == Dtype::kFloat16 || c.dtype(pair.square) == Dtype::kFloat16;
}

StepVerdict judge(const RuleInput& input, const SavedOptimizer& optimizer, const Covered& covered,
                  ValueBudget& budget, std::string& parameter) {
  StepVerdict verdict = covered.pairs.empty() ? StepVerdict::kFits : StepVerdict::kUnknown;
  for (const MomentPair* pair : covered.pairs) {
    // Half precision loses small squares, and is often scaled: nothing can be said of it.
    if (is_half(input.checkpoint, *pair)) continue;
    auto mean = read_values(input, pair->mean, budget);
    auto square = mean ? read_values(input, pair->square, budget) : std::nullopt;
    if (!mean || !square) continue;
    StepVerdict one =
        judge_step(*mean, *square, covered.step->step, betas_of(optimizer, pair->key));
    if (one == StepVerdict::kImpossible) {
      parameter = pair->key;
      return one;
    }
    if (one == StepVerdict::kFits) verdict = one;
  }
  return verdict;
}

}  // namespace

StepVerdict judge_step(const TensorValues& mean, const TensorValues& square,
                       std::optional<double> step, const std::optional<Betas>& betas) {
  double taken = step.value_or(0);
  bool narrow = mean.dtype == Dtype::kBfloat16 || square.dtype == Dtype::kBfloat16;
  double slack = narrow ? 0.05 : 0.02;
  double ratio = taken == 1 ? median_ratio(mean, square) : 0;
  double most = betas && taken >= 1 ? constant_after(taken, *betas) : 0;
  Seen seen;
  for (std::size_t i = 0; i < count_in(mean); ++i) {
    double m = value_at(mean.dtype, mean.bytes, i), v = value_at(square.dtype, square.bytes, i);
    if (!std::isfinite(m) || !std::isfinite(v)) continue;
    if (m != 0 || v != 0) ++seen.nonzero;
    if (std::abs(m) <= kSquareIsLost || v <= 0) continue;
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

StepCheck check_steps(const RuleInput& input, const SavedOptimizer& optimizer,
                      const std::vector<MomentPair>& pairs, ValueBudget& budget) {
  StepCheck out;
  std::vector<Covered> steps = steps_of(input.checkpoint, optimizer, pairs);
  for (const Covered& covered : steps) {
    auto step = covered.step->step;
    if (step && std::isfinite(*step) && (!out.latest || *step > *out.latest)) out.latest = step;
  }
  // After one step nobody can be behind.
  if (!out.latest || *out.latest < 2) return out;
  std::stable_sort(steps.begin(), steps.end(), [](const Covered& a, const Covered& b) {
    return a.step->step.value_or(0) < b.step->step.value_or(0);
  });
  std::size_t judged = 0;
  for (const Covered& covered : steps) {
    const SavedStep& step = *covered.step;
    if (step.step == out.latest) {
      if (step.tensor && out.tensor_donor == nullptr) out.tensor_donor = &step;
      if (step.object && out.object_donor == nullptr) out.object_donor = &step;
      continue;
    }
    std::string parameter;
    StepVerdict verdict = judged++ < kMostJudged
                              ? judge(input, optimizer, covered, budget, parameter)
                              : StepVerdict::kUnknown;
    if (verdict == StepVerdict::kImpossible) {
      out.wrong.push_back({&step, parameter});
      continue;
    }
    if (!covered.pairs.empty()) out.others_agree = false;
    bool far = step.step.value_or(0) <= 1 && *out.latest >= kBehindByFar;
    if (verdict == StepVerdict::kUnknown && far) out.unknown.push_back(&step);
  }
  return out;
}

}  // namespace shw
