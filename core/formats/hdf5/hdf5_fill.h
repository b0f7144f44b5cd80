// Unwritten elements of a dataset, which HDF5 reads as its fill value.
#pragma once

#include <vector>

#include "core/base/bytes.h"
#include "core/formats/hdf5/hdf5_messages.h"
#include "core/formats/hdf5/hdf5_object.h"
#include "core/model/format.h"
#include "core/tensor/shape.h"

namespace shw {

// Parses the old or the new fill value message; empty if invalid.
std::optional<Hdf5Fill> read_fill(const Hdf5Message& message);

// Codec whose items are the value's bytes, or for zeros any byte of the file.
const Codec& fill_codec(bool is_zero);

// Boxes of unwritten elements; empty if there are more than `most`, or if their value is
// undefined.
std::vector<Box> never_written(const Hdf5Array& array, std::size_t most);

}  // namespace shw
