// A DeepSpeed universal checkpoint: one file for every parameter and every optimizer state.
//
//   zero/NAME/KIND.pt      = {"param": tensor, "cat_dim": int, ...} | tensor
//   zero/optimizer_state.pt = {"param_groups": [...], ...}
//   mp_rank_MM_model_states.pt   as in a ZeRO step (zero_states.h)
#pragma once

#include <span>

#include "core/formats/format_row.h"

namespace shw {

bool is_universal(std::span<const Entry> entries);
OpenedCheckpoint open_universal(std::shared_ptr<const Directory> directory, Progress* progress);

}  // namespace shw
