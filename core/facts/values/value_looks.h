// What the values of optimizer states say beside those that they belong to: the second moment
// beside the first, a weight beside its master. Counted once, for several rules.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/facts/check_input.h"
#include "core/facts/states/moment_laws.h"
#include "core/facts/states/moment_pairs.h"
#include "core/facts/states/optimizer_settings.h"

namespace shw {

// Looked at without a limit where both sides of all pairs together are no more; else this part of
// all bytes of the checkpoint is read once more, all over the tensors.
inline constexpr std::uint64_t kLookedAtWhole = std::uint64_t{512} << 20;
inline constexpr std::uint64_t kReadOnceMore = 8;  // an eighth

struct MomentLook {
  MomentPair pair;
  std::optional<Betas> betas;  // that were saved beside them
  bool is_adams = false;       // and their group is Adam's own
  double constant = 0;         // what `count` was held against: of these betas, or of usual ones
  double slack = 0;
  bool is_read = false;
  MomentCount count;
  LogCorrelation correlation;  // of some of the elements
};

// A master, rounded, beside the weight.
struct CastCount {
  std::int64_t elements = 0;
  std::int64_t differing = 0;  // rounded, they are not the same code
  std::int64_t far = 0;        // not even near: more than a quarter apart
  void join(const CastCount& other);
};
struct MasterLook {
  TensorId master{}, weight{};
  bool is_read = false;
  CastCount count;
};

struct ValueLooks {
  std::vector<MomentLook> moments;
  std::vector<MasterLook> masters;
  std::uint64_t elements = 0, looked_at = 0;  // of pairs
};

// Empty above Depth::kData, and where there are no bytes. An error where somebody stopped it, or
// where the team broke. The same on any number of threads and by any number of members.
Result<ValueLooks> look_at_values(const CheckInput& input, const OptimizerSettings& settings,
                                  std::uint64_t whole_up_to = kLookedAtWhole);

}  // namespace shw
