#include "core/facts/values/value_anomaly.h"

#include <algorithm>
#include <array>

namespace shw {

namespace {

bool is_in_flat_bucket(std::string_view fqn) {
  return fqn.find(".bucket_idx_") != std::string_view::npos;
}

// Parameters and statistics whose names do not end in "weight": experts in one tensor, Mamba,
// attention sinks, tokens and positions, DeepSpeed's flat groups.
bool is_named_as_parameter(std::string_view fqn) {
  constexpr auto kEndings = std::to_array<std::string_view>({".w1",
                                                             ".w2",
                                                             ".w3",
                                                             ".A_log",
                                                             ".D",
                                                             ".sinks",
                                                             "running_mean",
                                                             "running_var",
                                                             "_token",
                                                             "_tokens",
                                                             "class_embedding",
                                                             "pos_embed",
                                                             "position_embedding",
                                                             "position_embeddings",
                                                             "bias_table",
                                                             "shift_table",
                                                             "codebook",
                                                             ".gamma",
                                                             ".beta",
                                                             ".lambda1"});
  constexpr auto kParts =
      std::to_array<std::string_view>({".experts.", "fp32_from_fp16_params", ".lora_"});
  const std::string_view last = fqn.substr(fqn.rfind('.') + 1);  // npos + 1 is 0
  const bool is_scale = last.find("scale") != last.npos && !last.ends_with("_table");
  if (is_in_flat_bucket(fqn) || is_scale) return false;
  // Transformer Engine numbers the weights of grouped layers: "linear_fc1.weight0".
  const std::string_view unnumbered = fqn.substr(0, fqn.find_last_not_of("0123456789") + 1);
  return unnumbered.ends_with(".weight") ||
         std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view ending) { return fqn.ends_with(ending); }) ||
         std::any_of(kParts.begin(), kParts.end(),
                     [&](std::string_view part) { return fqn.find(part) != fqn.npos; });
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
  if (nan != 0 && (is_weight_or_moment(fqn) || is_named_as_parameter(fqn)))
    return ValueAnomaly::kNan;
  // The causal mask of GPT-2 in transformers is a buffer named "attn.bias".
  if (infinite != 0 && is_weight_or_moment(fqn) && !fqn.ends_with("bias"))
    return ValueAnomaly::kInfinite;
  return ValueAnomaly::kPossiblyIntended;
}

bool are_huge_values_wrong(std::string_view fqn) {
  const bool may_be_large = fqn.ends_with("bias") || fqn.ends_with("exp_avg_sq") ||
                            fqn.find("running_") != std::string_view::npos;
  return !may_be_large && (is_weight_or_moment(fqn) || is_named_as_parameter(fqn));
}

}  // namespace shw
