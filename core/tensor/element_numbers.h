// Elements of a dtype as doubles, many at once.
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

// Null where elements of the dtype are no numbers.
ToNumbers to_numbers(Dtype dtype);

}  // namespace shw
