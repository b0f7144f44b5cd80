// Entries and files that megatron-core requires besides the tensors of a torch_dist checkpoint made
// by another program (tried with 0.16.1 and 0.19.2, default strictness):
//
//   metadata.json                        names the backend; a load begins with it
//   common.pt                            a dict; the trainer asks for args, iteration, version
//   <module>._extra_state/shard_I_N      [None], one per layer and expert of every linear module
//
// Entries that no module requests are harmless.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/formats/format_writer.h"
#include "core/formats/small_files.h"
#include "core/model/checkpoint.h"

namespace shw {

// What Megatron-core's optimizer asks common.pt for, from the states of a torch optimizer as
// torchtitan saves them:
//
//   optimizer.state.<fqn>.step            a number for each parameter; Megatron has one for all
//   optimizer.param_groups.<fqn>.betas    eps, lr, weight_decay: of the first parameter
struct AdamSettings {
  double step = 0, lr = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0;
};

// nullopt if the checkpoint lacks one of them, or its parameters have seen different numbers of
// steps.
std::optional<AdamSettings> adam_settings(const Checkpoint& source);

// The pickled dict of the key "optimizer". It has a group for each pair of what Megatron tells
// groups by: with weight decay or without, experts or not.
std::string pickled_optimizer(const AdamSettings& settings);

Result<SmallFiles> complete_megatron(Outputs& outputs);
bool is_megatron_extra_state(std::string_view fqn);

}  // namespace shw
