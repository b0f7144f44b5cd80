// A checkpoint of torch_checkpointing (0.1, "DCP v2"): one file per item and rank, and metadata.pkl
// for items that have tensors and a resharder.
//
//   ITEM_RANK.pt     torch.save archive whose DTensors record mesh, placements and rank
//   other names      recorded in a layout, in that form or as safetensors; for these only
//                    metadata.pkl records which parts the tensors are
//   ITEM.PATH        the name of a tensor; for plain tensors of an item that metadata.pkl lacks,
//                    ITEM.rank_R.PATH
#pragma once

#include "core/formats/format_row.h"

namespace shw {

OpenedCheckpoint open_items(std::shared_ptr<const Directory> directory, Progress* progress);

extern const FormatRow kTorchCheckpointingRow;
// The written form, which the row above recognises.
extern const FormatRow kTorchCheckpointingNewRow;

}  // namespace shw
