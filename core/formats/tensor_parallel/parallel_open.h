// A model in the form that a serving engine keeps for itself: safetensors files per rank of tensor
// parallelism, each with one rank's part of every tensor under one name (parallel_names.h). Parts
// are joined where name and sizes settle how (parallel_model.h); any other is a tensor of its rank,
// "rank_0.NAME".
#pragma once

#include "core/formats/format_row.h"

namespace shw {

OpenedCheckpoint open_tensor_parallel(std::shared_ptr<const Directory> directory,
                                      Progress* progress);

extern const FormatRow kTensorParallelRow;

}  // namespace shw
