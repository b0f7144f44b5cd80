// S3 (spec/failures.md 4, 0.7.2): optimizer states that are one rank's shard, saved as the whole.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/facts/check_input.h"
#include "core/facts/states/optimizer_states.h"

namespace shw {

struct LocalState {
  OptimizerState state;
  Extents expected;
  std::uint32_t writer = 0;
  ChunkId chunk{};
  std::optional<Box>
      home;             // where the survivor belongs; empty box: nothing survived; none: unknown
  std::string source;   // what tells it
  std::string why_not;  // where it is unknown
};

std::vector<LocalState> local_states(const CheckInput& input);
// The states of all of them.
std::set<TensorId> saved_as_global(const CheckInput& input);

}  // namespace shw
