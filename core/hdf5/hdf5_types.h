// Types of elements as the library has them. In the .cpp files of this room only.
#pragma once

#include <cstddef>
#include <vector>

#include "core/hdf5/hdf5_handle.h"
#include "core/tensor/dtype.h"

namespace shw {

// Little-endian, of the dtype's size. What HDF5 cannot say (float8_e4m3fn: it takes an exponent of
// ones for infinity) is unsigned bytes.
Hdf5Handle hdf5_type(Dtype dtype);

// An element that nobody takes for a value, in those bytes: NaN, the least signed and the greatest
// unsigned number.
std::vector<std::byte> loud_element(Dtype dtype);

}  // namespace shw
