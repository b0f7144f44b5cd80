// Elements of a dataset that were never written: HDF5 reads its fill value there.
#pragma once

#include <vector>

#include "core/base/bytes.h"
#include "core/formats/hdf5/hdf5_messages.h"
#include "core/formats/hdf5/hdf5_object.h"
#include "core/model/format.h"
#include "core/tensor/shape.h"

namespace shw {

// Of both messages that say it, the older one and the newer one. Nothing where it cannot be.
std::optional<Hdf5Fill> read_fill(const Hdf5Message& message);

// An item is the value's bytes, or, of zeros, any byte of the file.
const Codec& fill_codec(bool is_zero);

// The boxes of a dataset that nobody wrote; nothing where there are more than `most`, or where HDF5
// does not say what stands there.
std::vector<Box> never_written(const Hdf5Array& array, std::size_t most);

}  // namespace shw
