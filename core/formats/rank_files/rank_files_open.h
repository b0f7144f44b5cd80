// A folder of torch.save files, one per rank, whose tensors say themselves
// which part of the whole they are: DTensors with their mesh and placements
// (verl's FSDP checkpoints). Names are those in the files; of every kind but
// the model's with the kind before them: "optim.state.0.exp_avg".
#pragma once

#include "core/formats/format_row.h"

namespace shw {

OpenedCheckpoint open_rank_files(std::shared_ptr<const Directory> directory, Progress* progress);

extern const FormatRow kRankFilesRow;

}  // namespace shw
