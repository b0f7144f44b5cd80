// The layers of a DeepSpeed pipeline (layer_NN-model_MM-model_states.pt), under layer_NN.NAME.
// Where several tensor-parallel ranks saved, their parts are joined along the axis that Megatron's
// layers are cut along, as GPT-NeoX and Megatron-DeepSpeed have them: by name, no file says it.
#pragma once

#include <span>

#include "core/formats/deepspeed/zero_world.h"

namespace shw {

// What no rule joins is a tensor of its rank: mp_rank_MM.layer_NN.NAME.
void add_zero_layers(CheckpointBuilder& builder, ZeroStorages& storages, const Directory& directory,
                     std::span<const ZeroLayer> layers, ZeroNotes& notes);

}  // namespace shw
