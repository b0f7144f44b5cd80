// Fingerprint of a chunk from its row-major byte stream. Elements are added in runs that are
// contiguous in the tensor.
#pragma once

#include <array>

#include "core/base/bytes.h"
#include "core/tensor/fingerprint.h"
#include "core/tensor/shape.h"

namespace shw {

// Adds a row-major box. `first` and `strides` (in elements) give the tensor index
// of its elements; the tensor may number its elements in another order than
// row-major.
void add_box(Fingerprint& to, ExtentsView sizes, BytesView elements, std::size_t element_size,
             ExtentsView strides, std::int64_t first);

class TileFingerprint {
 public:
  // `tile` must be in `shape`; both are checked.
  TileFingerprint(ExtentsView shape, const Box& tile, std::size_t element_size);
  // Adds the next bytes; an element may be split over two calls.
  void add(BytesView bytes);
  void add_zeros(std::uint64_t bytes);
  const Fingerprint& value() const { return value_; }
  bool is_complete() const { return left_ == 0 && held_ == 0; }

 private:
  void add_whole(const std::byte* elements, std::uint64_t count);
  void skip(std::uint64_t count);
  void step();

  std::size_t size_;
  std::uint64_t run_ = 1;         // elements per contiguous run in the tensor
  std::uint64_t done_ = 0;        // elements of the current run
  std::uint64_t left_ = 0;        // remaining elements of the chunk
  Extents at_, sizes_, strides_;  // dims outside a run; strides in tensor elements
  std::uint64_t first_ = 0;       // tensor index where the run begins
  std::array<std::byte, 16> begun_{};
  std::size_t held_ = 0;
  Fingerprint value_;
};

}  // namespace shw
