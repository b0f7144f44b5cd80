// An optimizer's file next to the weights (optimizer.pt of transformers' Trainer, optimizer.bin of
// accelerate): compares the shapes of its states with the weights. Reads the metadata and no
// state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/common/torch_file_tensors.h"
#include "core/model/checkpoint.h"

namespace shw {

struct AdjacentState {
  std::string parameter;  // "3" (an index) or a name
  std::string key;        // "exp_avg"
  TorchFileTensor tensor;
};
struct AdjacentOptimizer {
  std::string path;
  std::vector<AdjacentState> states;  // without counters, which have no dimensions
};

// Unreferenced files at the top of the checkpoint's folder that hold optimizer states and can be
// read.
std::vector<AdjacentOptimizer> adjacent_optimizers(const Checkpoint& checkpoint);

// Shape of the states by parameter; nullopt if states of one parameter differ in shape, as in
// factored or quantised optimizers.
struct AdjacentShapes {
  std::vector<std::string> parameters;
  std::vector<Extents> shapes;
};
std::optional<AdjacentShapes> shapes_of(const AdjacentOptimizer& optimizer);

// States that are `parts` times smaller than their weights in one dimension, as one of that many
// ranks holds them. States with an index are not tied to a weight: the test is whether all states
// can be matched to distinct weights.
struct CutStates {
  std::int64_t parts = 1;
  std::size_t cut = 0;      // number of such states
  std::size_t example = 0;  // index of the first in AdjacentShapes
  Extents whole;            // a weight that it may belong to
};
// nullopt if the states fit whole weights, or if no number of ranks explains all.
std::optional<CutStates> infer_sharded_states(const Checkpoint& checkpoint,
                                              const AdjacentShapes& shapes);

// Flat states of FSDP or DeepSpeed with the number of elements that one of several ranks
// holds.
struct FlatStates {
  std::int64_t ranks = 0;
  std::int64_t elements = 0, weights = 0;  // elements per kind of state, and of all weights
  std::size_t rows = 0;
};
std::optional<FlatStates> infer_flat_states(const Checkpoint& checkpoint,
                                            const AdjacentShapes& shapes);

}  // namespace shw
