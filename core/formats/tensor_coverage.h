// Records which elements of a tensor have been filled.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/shape.h"

namespace shw {

// One bit per element.
class Coverage {
 public:
  explicit Coverage(std::int64_t elements)
      : elements_(elements), bits_((static_cast<std::size_t>(elements) + 7) / 8) {}
  void add(const Box& box, ExtentsView strides) {
    // The innermost extent is a run of bits; the outer ones are iterated.
    std::size_t ndim = box.sizes.size();
    std::int64_t run = ndim == 0 ? 1 : box.sizes[ndim - 1];
    Extents at = box.offsets;
    while (true) {
      std::int64_t first = 0;
      for (std::size_t d = 0; d < ndim; ++d) first += at[d] * strides[d];
      mark(static_cast<std::size_t>(first), static_cast<std::size_t>(first + run));
      std::size_t d = ndim == 0 ? 0 : ndim - 1;
      while (d-- > 0) {
        if (++at[d] < box.offsets[d] + box.sizes[d]) break;
        at[d] = box.offsets[d];
      }
      if (d == static_cast<std::size_t>(-1)) return;
    }
  }
  std::int64_t missing() const {
    std::int64_t set = 0;
    for (std::uint8_t byte : bits_) set += __builtin_popcount(byte);
    return elements_ - set;
  }

 private:
  void mark(std::size_t first, std::size_t last) {
    for (; first < last && first % 8 != 0; ++first) set(first);
    for (; first + 8 <= last; first += 8) bits_[first / 8] = 0xFF;
    for (; first < last; ++first) set(first);
  }
  void set(std::size_t i) { bits_[i / 8] = static_cast<std::uint8_t>(bits_[i / 8] | 1u << i % 8); }

  std::int64_t elements_;
  std::vector<std::uint8_t> bits_;
};

}  // namespace shw
