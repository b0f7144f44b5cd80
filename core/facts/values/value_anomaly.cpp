#include "core/facts/values/value_anomaly.h"

#include <algorithm>
#include <array>

namespace shw {

bool is_computed_with(std::string_view fqn) {
  if (fqn.find(".bucket_idx_") != std::string_view::npos) return false;
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
  if (nan != 0 && is_computed_with(fqn)) return ValueAnomaly::kNan;
  // The causal mask of GPT-2 in transformers is a buffer named "attn.bias".
  if (infinite != 0 && is_computed_with(fqn) && !fqn.ends_with("bias"))
    return ValueAnomaly::kInfinite;
  return ValueAnomaly::kPossiblyMeant;
}

}  // namespace shw
