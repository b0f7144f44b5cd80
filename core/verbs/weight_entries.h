// Which entries of a checkpoint are tensors of the model, told by its structure.
//
//   {"model": {...}, "optim": {...}, "step": 7}     a state dict of state dicts: what stands under
//                                                   the key of a model
//   {"layers.0.w": ..., "optimizer": {...}}         the model's own state dict with more beside it:
//                                                   what stands at its top
//   optimizer.state.exp_avg.layers.0.w              without a structure (Megatron, files of several
//                                                   ranks) names tell
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw::verbs {

struct NotWeights {
  std::vector<std::string> names;              // of tensors and entries, in recorded order
  std::map<std::string, std::size_t> by_root;  // how many stand under "optim", "rng_state"
  std::string model_key;  // "model.", before every weight; empty where it is none of all of them
};
NotWeights entries_that_are_not_weights(const Checkpoint& checkpoint);

// "left out: 66 entries that are not weights (optim 64, rng 1, step 1)"; empty where none is.
std::string in_words(const NotWeights& left);

}  // namespace shw::verbs
