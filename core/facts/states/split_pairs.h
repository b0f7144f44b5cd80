// S2 (spec/failures.md 3): gated weights saved as two halves, _w and _v, whose optimizer states
// were cut by the length of one rank's shard.
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
  std::int64_t chunks = 0;  // T
  std::int64_t rows = 0;    // q
  std::int64_t ratio = 0;   // rows of the model over rows of the state
};

std::vector<SplitPair> split_pairs(const CheckInput& input);
// The states of all of them.
std::set<TensorId> split_locally(const CheckInput& input);

}  // namespace shw
