// A file that torch.save wrote, read as a checkpoint of one rank.
//
//   file    = zip archive (common/zip.h) with data.pkl, byteorder, data/N, version
//   data.pkl = a state dict (state_dict.h)
//
// A tensor is one chunk that views its storage, tied tensors share one. What is no tensor is an
// object whose value goes with it where it is plain data. Read, never run.
#pragma once

#include <memory>

#include "core/formats/format_row.h"

namespace shw {

// Of a directory with one such file at the top. A tensor that cannot be looked at (sparse,
// quantised, a program's own class) is an object and an opening finding. Errors: kUnsupported (of
// before zip, no dict), kDamaged, with file and offset.
OpenedCheckpoint open_torch_file(std::shared_ptr<const Directory> directory, Progress* progress);

}  // namespace shw
