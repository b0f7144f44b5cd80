// The layers of a DeepSpeed pipeline (layer_NN-model_MM-model_states.pt), named layer_NN.NAME.
// Parts of several tensor-parallel ranks are joined along the axis that Megatron splits in GPT-NeoX
// and Megatron-DeepSpeed: by the tensor's name, since no file records it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "core/formats/deepspeed/zero_save.h"

namespace shw {

// What the file of a rank records of the whole model.
struct RecordedLayers {
  std::string path;
  std::optional<std::int64_t> blocks = {};  // args.num_layers of GPT-NeoX
  // Numbers before the names of parameters in param_shapes: "3" of "3.mlp.weight".
  std::set<std::uint32_t> numbers = {};
};

// A tensor without a known axis is kept per rank: mp_rank_MM.layer_NN.NAME.
void add_zero_layers(CheckpointBuilder& builder, ZeroStorages& storages, const Directory& directory,
                     std::span<const ZeroLayer> layers, const RecordedLayers& recorded,
                     ZeroPickleFindings& notes);

}  // namespace shw
