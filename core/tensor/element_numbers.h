// Converts elements of a dtype to doubles, many per call.
#pragma once

#include <cstddef>
#include <cstring>

#include "core/tensor/dtype.h"

namespace shw {

template <class Bits>
Bits code_at(const std::byte* elements, std::size_t i) {
  Bits bits;
  std::memcpy(&bits, elements + i * sizeof(Bits), sizeof(Bits));
  return bits;
}

using ToNumbers = void (*)(const std::byte*, std::size_t, double*);

// Null if elements of the dtype are not numbers.
ToNumbers to_numbers(Dtype dtype);

}  // namespace shw
