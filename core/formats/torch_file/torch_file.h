// A file that torch.save wrote, read as a checkpoint of one rank.
//
//   file    = zip archive (common/zip.h) with data.pkl, byteorder, data/N, version
//   data.pkl = a state dict (state_dict.h)
//
// A tensor is one chunk that views its storage; tied tensors share a storage. Other values become
// objects, which conversions keep if they are plain data. Nothing is executed.
#pragma once

#include <memory>

#include "core/formats/format_row.h"

namespace shw {

// Opens a directory with one such file at the top. An unsupported tensor (sparse, quantised, a
// program's own class) becomes an object and an opening finding. Errors: kUnsupported (not a state
// dict), kDamaged, with file and offset.
OpenedCheckpoint open_torch_file(std::shared_ptr<const Directory> directory, Progress* progress);

}  // namespace shw
