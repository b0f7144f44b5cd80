// HDF5 checkpoints: Keras 3 weights in one file, in several with an index, or in an archive with
// the model (.keras); and files per rank whose datasets have attributes `offsets` and
// `global_shape`.
//
// A tensor's name is its dataset's path without the first slash: "layers/dense/vars/0".
#pragma once

#include <memory>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/format_row.h"

namespace shw {

// Unreadable datasets, and unreadable files among several, become findings (bad-record).
OpenedCheckpoint open_hdf5(std::shared_ptr<const Directory> directory, Progress* progress);

}  // namespace shw
