// Gated weights saved as two halves, _w and _v, whose optimizer states were split by the length of
// one rank's shard.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/facts/check_input.h"
#include "core/facts/states/optimizer_states.h"

namespace shw {

struct SplitHalf {
  TensorId state{};
  TensorId parameter{};
};

struct SplitPair {
  SplitHalf w, v;
  StateRole role = StateRole::kOther;
  std::string kind;
  std::int64_t chunks = 0;  // number of chunks
  std::int64_t rows = 0;    // rows of the state per chunk
  std::int64_t ratio = 0;   // rows of the model / rows of the state
};

std::vector<SplitPair> split_pairs(const CheckInput& input);
// The tensors with a state in a pair that split_pairs() returns.
std::set<TensorId> states_split_locally(const CheckInput& input);

}  // namespace shw
