#include "core/facts/names/float32_names.h"

#include <algorithm>
#include <array>

namespace shw {

bool is_router_bias(std::string_view fqn) {
  return fqn.ends_with("e_score_correction_bias");
}

bool is_kept_in_float32(std::string_view fqn) {
  constexpr auto kFloat32LastNames = std::to_array<std::string_view>(
      {"expert_bias", "inv_freq", "A_log", "dt_bias", "time_decay", "time_first"});
  const std::string_view last = fqn.substr(fqn.rfind('.') + 1);
  return is_router_bias(fqn) || std::find(kFloat32LastNames.begin(), kFloat32LastNames.end(),
                                          last) != kFloat32LastNames.end();
}

}  // namespace shw
