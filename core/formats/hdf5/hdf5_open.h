// HDF5 checkpoints: Keras 3 weights, in one file, in several with an index, or in an archive with
// its model (.keras), and one file a rank
// whose datasets say with the attributes `offsets` and `global_shape` where they belong.
//
// A tensor is named by the path of its dataset, without the first slash: "layers/dense/vars/0".
#pragma once

#include <memory>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/format_row.h"

namespace shw {

// A dataset that cannot be read, and a file of several, become findings (bad-record).
OpenedCheckpoint open_hdf5(std::shared_ptr<const Directory> directory, Progress* progress);

}  // namespace shw
