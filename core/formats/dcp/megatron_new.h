// Entries and files that megatron-core requires besides the tensors of a torch_dist checkpoint made
// by another program (tried with 0.16.1 and 0.19.2, default strictness):
//
//   metadata.json                        names the backend; a load begins with it
//   common.pt                            a dict; the trainer asks for args, iteration, version
//
// Entries of a map say what optimizer the target has:
//
//   optimizer.torch_adam/shard_0_1       its Adam is torch's
//   optimizer.expert_parallel/shard_0_1  experts have an optimizer of their own
//   <module>._extra_state/shard_I_N      [None], one per layer and expert of every linear module
//
// Entries that no module requests are harmless.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/formats/adam_settings.h"
#include "core/formats/format_writer.h"
#include "core/formats/small_files.h"
#include "core/model/checkpoint.h"

namespace shw {

// Megatron's classes of optimizers, which name their states differently and ask for other dicts.
enum class MegatronOptimizer : std::uint8_t {
  kDistributed,  // optimizer.state.param
  kFloat16,      // optimizer.state.fp32_param
  kFloat32,      // moments alone
};
// With weight decay or without.
struct MegatronGroups {
  bool has_decay = true, has_no_decay = true;
};
struct PickledOptimizerOptions {
  MegatronOptimizer kind = MegatronOptimizer::kDistributed;
  // Which parameter groups the checkpoint has, with and without weight decay. For the distributed
  // optimizer all pairs are written and Megatron picks its own.
  MegatronGroups dense = {}, experts = {};
  bool is_torch_adam = false;       // the steps are a state of each parameter, not of its group
  bool is_expert_parallel = false;  // experts have an optimizer of their own
};
// The pickled dict of the key "optimizer". For the distributed optimizer it has a group for each
// pair of what Megatron tells groups by: with weight decay or without, experts or not.
std::string pickled_optimizer(const AdamSettings& settings,
                              const PickledOptimizerOptions& options = {});

Result<SmallFiles> complete_megatron(Outputs& outputs);
bool is_megatron_extra_state(std::string_view fqn);

}  // namespace shw
