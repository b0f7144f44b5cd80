// Optimizer states that are one rank's shard, saved as the global tensor.
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
      home;             // the box of the retained part; empty: nothing is left; nullopt: unknown
  std::string source;   // evidence for it
  std::string why_not;  // reason if it is unknown
};

std::vector<LocalState> local_states(const CheckInput& input);
// The tensors with an optimizer state that local_states() returns.
std::set<TensorId> states_saved_as_global(const CheckInput& input);

}  // namespace shw
