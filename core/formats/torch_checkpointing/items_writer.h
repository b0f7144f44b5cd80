// A checkpoint of torch_checkpointing (0.1), new: the form that its loader can reshard to any mesh.
//
//   ITEM_RANK.safetensors   whole tensors, keys joined by dots; every rank has a file of each item
//   metadata.pkl            which rank has each tensor (items_metadata.h), protocol 4
//
// ITEM is the first key of a nested state dict ("model", "optim"), as its manager takes them, or
// what stands before the first dot of a name. Each file takes shard_bytes: the ranks are the files.
#pragma once

#include "core/formats/format_writer.h"

namespace shw {

extern const FormatWriter kItemsWriter;

}  // namespace shw
