// Element types of the HDF5 library. Only for .cpp files of core/hdf5.
#pragma once

#include <cstddef>
#include <vector>

#include "core/hdf5/hdf5_handle.h"
#include "core/tensor/dtype.h"

namespace shw {

// The little-endian type of the dtype's size. Unsigned bytes for types that HDF5 cannot express
// (float8_e4m3fn: HDF5 reads exponents of ones as infinity).
Hdf5Handle hdf5_type(Dtype dtype);

// A marker for missing elements: NaN, the least signed or the greatest unsigned
// number.
std::vector<std::byte> missing_element_marker(Dtype dtype);

}  // namespace shw
