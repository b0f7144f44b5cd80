// Checkpoints of nanotron: one safetensors file per parameter and tensor-parallel rank, in folders
// named after the modules. Each file records where its part is in the whole tensor.
//
//   STEP    = checkpoint_metadata.json  model/MODULE/.../FILE  optimizer/optimizer_RANKS.pt
//   FILE    = model_PARAMETER[_pp-rank-P-of-PP_tp-rank-T-of-TT].safetensors, the tensor "data"
//   __metadata__ = unsharded_shape "(8, 6)", local_global_slices_pairs PAIR;PAIR...
//   PAIR    = SLICE|SLICE...#SLICE|SLICE...     in this file, in the whole tensor
//   SLICE   = start,stop,step
//
// A tensor's name is the folders and the parameter, joined by dots. Optimizer states are flat parts
// of parameters that no file names, so each rank's states are separate tensors.
#pragma once

#include "core/formats/format_row.h"

namespace shw {

extern const FormatRow kNanotronRow;

}  // namespace shw
