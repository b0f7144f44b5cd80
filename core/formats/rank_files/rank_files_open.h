// A folder of torch.save files, one per rank, whose tensors are DTensors with
// mesh and placements (verl's FSDP checkpoints). Names are those in the
// files, prefixed by the kind of file except for the model:
// "optim.state.0.exp_avg".
#pragma once

#include "core/formats/format_row.h"

namespace shw {

OpenedCheckpoint open_rank_files(std::shared_ptr<const Directory> directory, Progress* progress);

extern const FormatRow kRankFilesRow;

}  // namespace shw
