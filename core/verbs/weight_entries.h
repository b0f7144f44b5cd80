// Finds which entries of a checkpoint are tensors of the model, by its structure.
//
//   {"model": {...}, "optim": {...}, "step": 7}  a state dict of state dicts: entries under the key
//                                                of a model
//   {"layers.0.w": ..., "optimizer": {...}}      the model's own state dict with additions: entries
//                                                at its top
//   optimizer.state.exp_avg.layers.0.w           no structure (Megatron, files of several ranks):
//                                                by names
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw::verbs {

struct NonWeightEntries {
  std::vector<std::string> names;              // of tensors and entries, in recorded order
  std::map<std::string, std::size_t> by_root;  // number of entries under "optim", "rng_state"
  std::string model_key;  // "model.", the prefix of every weight; empty if there is no common one
};
NonWeightEntries entries_that_are_not_weights(const Checkpoint& checkpoint);

// "left out: 66 entries that are not weights (optim 64, rng 1, step 1)"; empty if there are none.
std::string in_words(const NonWeightEntries& left);

}  // namespace shw::verbs
