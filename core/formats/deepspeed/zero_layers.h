// The layers of a DeepSpeed pipeline (layer_NN-model_MM-model_states.pt), named layer_NN.NAME.
// Parts of several tensor-parallel ranks are joined along the axis that Megatron splits in GPT-NeoX
// and Megatron-DeepSpeed: by the tensor's name, since no file records it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/formats/deepspeed/zero_world.h"

namespace shw {

// The number of blocks of the whole model, and the file that records it.
struct RecordedBlocks {
  std::string path;
  std::int64_t count = 0;
};

// A tensor without a known axis is kept per rank: mp_rank_MM.layer_NN.NAME.
void add_zero_layers(CheckpointBuilder& builder, ZeroStorages& storages, const Directory& directory,
                     std::span<const ZeroLayer> layers, const std::optional<RecordedBlocks>& blocks,
                     ZeroNotes& notes);

}  // namespace shw
