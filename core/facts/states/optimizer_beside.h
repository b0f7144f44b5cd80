// An optimizer's file beside the weights (optimizer.pt of transformers' Trainer, optimizer.bin of
// accelerate): the shapes of its states, and whether they can be those of the weights. What it says
// is read, and no byte of a state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/common/side_tensors.h"
#include "core/model/checkpoint.h"

namespace shw {

struct StateBeside {
  std::string parameter;  // "3", by number, or a name
  std::string key;        // "exp_avg"
  SideTensor tensor;
};
struct OptimizerBeside {
  std::string path;
  std::vector<StateBeside> states;  // with dimensions: no counters
};

// Files at the top of the checkpoint's folder that nothing points to. Those that cannot be read, or
// that hold no state, are left out.
std::vector<OptimizerBeside> optimizers_beside(const Checkpoint& checkpoint);

// By parameter the shape of its states; nothing where states of one parameter differ, as those of
// factored or quantised optimizers do.
struct ShapesBeside {
  std::vector<std::string> parameters;
  std::vector<Extents> shapes;
};
std::optional<ShapesBeside> shapes_of(const OptimizerBeside& optimizer);

// States that are `parts` times smaller than their weights in one dimension: what one rank of as
// many has. Which weight each is of is not known where states are numbered: it is a way of giving
// every state a weight of its own.
struct CutStates {
  std::int64_t parts = 1;
  std::size_t cut = 0;      // states
  std::size_t example = 0;  // the first of them, in ShapesBeside
  Extents whole;            // a weight that it may be of
};
// Nothing where the states fit whole weights, or no number of ranks explains all of them.
std::optional<CutStates> cut_states(const Checkpoint& checkpoint, const ShapesBeside& shapes);

// States that are rows of numbers, as FSDP and DeepSpeed keep them, with the elements that one rank
// of several has of all weights.
struct FlatStates {
  std::int64_t ranks = 0;
  std::int64_t elements = 0, weights = 0;  // of a kind of state, of the weights
  std::size_t rows = 0;
};
std::optional<FlatStates> flat_states(const Checkpoint& checkpoint, const ShapesBeside& shapes);

}  // namespace shw
