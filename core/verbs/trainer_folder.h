// A folder that transformers' Trainer saved, with its optimizer: the weights, and the states of
// optimizer.pt by the names of their parameters. The file itself has numbers (trainer_groups.h).
//
//   checkpoint-500/@optimizer             the order of the parameters is in the files
//   checkpoint-500/@optimizer=names.txt   it is given, as with --order
#pragma once

#include <memory>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw::verbs {

// Names of states are those of torch.distributed.checkpoint: "optimizer.state.NAME.exp_avg", and
// "optimizer.param_groups.0.params" has the names of a group. kUsage if the order is not known;
// kUnsupported if it does not fit the file.
Result<std::shared_ptr<const Checkpoint>> join_trainer_optimizer(
    std::shared_ptr<const Checkpoint> weights, std::shared_ptr<const Checkpoint> optimizer,
    const std::string& order, Progress* progress);

// The name of the optimizer's file in the folder: "optimizer.pt" of Trainer, "optimizer.bin" of
// accelerate. kUsage if there is none.
Result<std::string> trainer_optimizer_file(const Checkpoint& weights);

}  // namespace shw::verbs
