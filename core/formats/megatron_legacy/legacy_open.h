// Megatron's `torch` format, which it wrote before its distributed checkpoints and still writes
// with
// --ckpt-format torch: mp_rank_TT[_PPP][_EEE]/model_optim_rng.pt, one per model-parallel rank.
//
//   model.NAME            a parameter, of the parts of all tensor-parallel ranks, with the number
//                         that its layer and its expert have in the whole model
//   mp_rank_TT_PPP.NAME   what a rank has of its own, or what no rule joins: states of random
//                         numbers, of the optimizer, and parameters of a name that is not
//                         Megatron's
#pragma once

#include "core/formats/format_row.h"

namespace shw {

OpenedCheckpoint open_megatron_legacy(std::shared_ptr<const Directory> directory,
                                      Progress* progress);

extern const FormatRow kMegatronLegacyRow;

}  // namespace shw
