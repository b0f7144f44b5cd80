// HDF5 checkpoints: Keras 3 weights, in one file or in several with an index, and one file a rank
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

inline constexpr std::string_view kKerasIndexSuffix = ".weights.json";
bool has_hdf5_name(std::string_view path);  // "model.weights.h5", "rank_3.hdf5"

}  // namespace shw
