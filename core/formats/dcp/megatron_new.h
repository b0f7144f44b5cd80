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

#include "core/formats/adam_settings.h"
#include "core/formats/format_writer.h"
#include "core/formats/small_files.h"
#include "core/model/checkpoint.h"

namespace shw {

// The pickled dict of the key "optimizer". It has a group for each pair of what Megatron tells
// groups by: with weight decay or without, experts or not.
std::string pickled_optimizer(const AdamSettings& settings);

Result<SmallFiles> complete_megatron(Outputs& outputs);
bool is_megatron_extra_state(std::string_view fqn);

}  // namespace shw
