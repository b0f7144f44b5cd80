// Writes a new checkpoint of torch_checkpointing (0.1), which its loader can reshard to any mesh.
//
//   ITEM_RANK.safetensors   whole tensors, keys joined by dots; every rank has a file per item
//   metadata.pkl            which rank has each tensor (items_metadata.h), protocol 4
//
// ITEM is the first key of a nested state dict ("model", "optim"), as the library's manager
// expects, or the part of a name before the first dot. Each file has at most shard_bytes; the
// number of files is the number of ranks.
#pragma once

#include "core/formats/format_writer.h"

namespace shw {

extern const FormatWriter kItemsWriter;

}  // namespace shw
