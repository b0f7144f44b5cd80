// A model in a serving engine's own form: safetensors files per tensor-parallel rank, each with one
// rank's part of every tensor under the same name (parallel_names.h). Parts are joined if name and
// sizes determine how (parallel_model.h); other parts become tensors of their rank: "rank_0.NAME".
#pragma once

#include "core/formats/format_row.h"

namespace shw {

OpenedCheckpoint open_tensor_parallel(std::shared_ptr<const Directory> directory,
                                      Progress* progress);

extern const FormatRow kTensorParallelRow;

}  // namespace shw
