// What NaN and infinity in a tensor mean, by its name: for the rule that reports them and for the
// desktop's count.
#pragma once

#include <cstdint>
#include <string_view>

namespace shw {

// True for weights and their moments, but not for masks and other buffers. The padding of
// Megatron's flat buckets was never written.
bool is_weight_or_moment(std::string_view fqn);

enum class ValueAnomaly : std::uint8_t {
  kNone,
  kAllNan,            // nothing but NaN
  kNan,               // NaN in a weight or in a statistic that a model computes with
  kInfinite,          // infinity in a weight that is not a bias
  kPossiblyIntended,  // a mask may be saved as NaN or infinity
};
// Classifies a tensor by name: `nan` and `infinite` count its NaN and infinite elements among
// `elements` read.
ValueAnomaly value_anomaly(std::string_view fqn, std::uint64_t elements, std::uint64_t nan,
                           std::uint64_t infinite);

// True if numbers of FloatCounts::huge cannot be meant in a tensor of this name. Variances may be
// large, and a bias may mask some of its outputs.
bool are_huge_values_wrong(std::string_view fqn);

}  // namespace shw
