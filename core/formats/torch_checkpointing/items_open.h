// A checkpoint of torch_checkpointing (0.1, "DCP v2"): one file per item and rank, and metadata.pkl
// of those items that have tensors and a resharder.
//
//   ITEM_RANK.pt     a zip of torch.save whose DTensors say mesh, placements and rank themselves
//   what a layout names, in that form or as safetensors: there metadata.pkl alone says what the
//                    file's tensors are parts of
//   ITEM.PATH        the name of a tensor; of an item that metadata.pkl does not have and whose
//                    tensors are plain, ITEM.rank_R.PATH
#pragma once

#include "core/formats/format_row.h"

namespace shw {

OpenedCheckpoint open_items(std::shared_ptr<const Directory> directory, Progress* progress);

extern const FormatRow kTorchCheckpointingRow;
// The form that is written: recognised by the row above.
extern const FormatRow kTorchCheckpointingNewRow;

}  // namespace shw
