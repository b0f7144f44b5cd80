// Compares values of optimizer states with related tensors: second moment with first, weight with
// master. Computed once for several rules.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/facts/check_input.h"
#include "core/facts/states/moment_constraints.h"
#include "core/facts/states/moment_pairs.h"
#include "core/facts/states/optimizer_settings.h"

namespace shw {

// Below this many bytes all pairs are read completely; above, samples are read from all tensors, up
// to the following part of the checkpoint's bytes.
inline constexpr std::uint64_t kFullReadLimit = std::uint64_t{512} << 20;
inline constexpr std::uint64_t kSampleDivisor = 8;  // one eighth

struct MomentValues {
  MomentPair pair;
  std::optional<Betas> betas;  // saved with the moments
  bool is_adams = false;       // the group is that of Adam
  double constant = 0;         // the constant that `count` used: for these betas, or for usual ones
  double slack = 0;
  bool is_read = false;
  MomentCount count;
  LogCorrelation correlation;  // over a part of the elements
};

// Comparison of a rounded master with its weight.
struct CastCount {
  std::int64_t elements = 0;
  std::int64_t differing = 0;  // elements with different codes after rounding
  std::int64_t far = 0;        // elements more than a quarter apart
  void join(const CastCount& other);
};
struct MasterValues {
  TensorId master{}, weight{};
  bool is_read = false;
  CastCount count;
};

struct OptimizerValues {
  std::vector<MomentValues> moments;
  std::vector<MasterValues> masters;
  std::uint64_t elements = 0, looked_at = 0;  // of pairs
};

// Empty above Depth::kData, and without data. Errors: cancellation, or a failure of the team.
// Results do not depend on the number of threads and ranks.
Result<OptimizerValues> read_optimizer_values(const CheckInput& input,
                                              const OptimizerSettings& settings,
                                              std::uint64_t whole_up_to = kFullReadLimit);

}  // namespace shw
