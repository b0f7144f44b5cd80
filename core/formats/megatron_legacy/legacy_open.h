// Megatron's `torch` format, the only one before distributed checkpoints and still written with
// --ckpt-format torch: mp_rank_TT[_PPP][_EEE]/model_optim_rng.pt, one per model-parallel rank.
//
//   model.NAME            a parameter, joined from all tensor-parallel ranks; layers and experts
//                         have their numbers in the whole model
//   mp_rank_TT_PPP.NAME   a tensor of one rank: random states, optimizer states, and parameters
//                         whose name is not one of Megatron's
#pragma once

#include "core/formats/format_row.h"

namespace shw {

OpenedCheckpoint open_megatron_legacy(std::shared_ptr<const Directory> directory,
                                      Progress* progress);

extern const FormatRow kMegatronLegacyRow;

}  // namespace shw
