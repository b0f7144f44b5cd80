// Checkpoints of nanotron: a safetensors file per parameter and tensor-parallel rank, in folders
// named by the modules, which says itself where its part lies in the whole.
//
//   STEP    = checkpoint_metadata.json  model/MODULE/.../FILE  optimizer/optimizer_RANKS.pt
//   FILE    = model_PARAMETER[_pp-rank-P-of-PP_tp-rank-T-of-TT].safetensors, the tensor "data"
//   __metadata__ = unsharded_shape "(8, 6)", local_global_slices_pairs PAIR;PAIR...
//   PAIR    = SLICE|SLICE...#SLICE|SLICE...     of this file, of the whole tensor
//   SLICE   = start,stop,step
//
// The name of a tensor is the folders and the parameter, joined by dots. Optimizer states are flat
// parts of parameters that no file names: each rank's are tensors of its own.
#pragma once

#include "core/formats/format_row.h"

namespace shw {

extern const FormatRow kNanotronRow;

}  // namespace shw
