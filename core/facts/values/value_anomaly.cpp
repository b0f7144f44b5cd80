#include "core/facts/values/value_anomaly.h"

#include <algorithm>
#include <array>

namespace shw {

namespace {

bool is_in_flat_bucket(std::string_view fqn) {
  return fqn.find(".bucket_idx_") != std::string_view::npos;
}

// Masks and what observers keep may hold NaN.
bool may_hold_nan(std::string_view fqn) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"mask", "causal", "amax", "scale", "observer", "min_val", "max_val", "zero_point"});
  return is_in_flat_bucket(fqn) ||
         std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return fqn.find(word) != fqn.npos; });
}

}  // namespace

bool is_weight_or_moment(std::string_view fqn) {
  if (is_in_flat_bucket(fqn)) return false;
  // Stacked experts and Flax have weights whose names do not end in "weight".
  constexpr auto kEndings =
      std::to_array<std::string_view>({"weight", "bias", ".exp_avg", ".exp_avg_sq",
                                       ".momentum_buffer", "_proj", "kernel", "embedding"});
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view ending) { return fqn.ends_with(ending); });
}

ValueAnomaly value_anomaly(std::string_view fqn, std::uint64_t elements, std::uint64_t nan,
                           std::uint64_t infinite) {
  // Smaller tensors may be scales that were never set.
  constexpr std::uint64_t kEnough = 64;
  if (nan == 0 && infinite == 0) return ValueAnomaly::kNone;
  if (nan == elements && elements >= kEnough) return ValueAnomaly::kAllNan;
  const bool is_unknown_weight = elements >= kEnough && !may_hold_nan(fqn);
  if (nan != 0 && (is_weight_or_moment(fqn) || is_unknown_weight)) return ValueAnomaly::kNan;
  // The causal mask of GPT-2 in transformers is a buffer named "attn.bias".
  if (infinite != 0 && is_weight_or_moment(fqn) && !fqn.ends_with("bias"))
    return ValueAnomaly::kInfinite;
  return ValueAnomaly::kPossiblyMeant;
}

}  // namespace shw
