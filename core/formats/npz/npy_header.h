// The header of a .npy array.
//
//   array  = "\x93NUMPY" major(u8) minor(u8) length header data
//   length = u16 in version 1, u32 in versions 2 and 3
//   header = a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
#pragma once

#include <string>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/tensor/shape.h"

namespace shw {

struct NpyHeader {
  std::string descr;  // "<f4"; empty for a structured dtype
  bool is_column_major = false;
  Extents shape;
  std::uint64_t length = 0;  // header bytes before the data
};

inline constexpr std::uint64_t kMaxNpyHeader = std::uint64_t{64} << 10;

bool begins_as_npy(BytesView bytes);
// `bytes`: the first kMaxNpyHeader bytes of the array, or all of a shorter one.
Result<NpyHeader> parse_npy_header(BytesView bytes);

}  // namespace shw
