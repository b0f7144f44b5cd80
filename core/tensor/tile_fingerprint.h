// The fingerprint of a tile whose elements come one after the other, row-major: by their index in
// the whole tensor, in as long runs as there are.
#pragma once

#include <array>

#include "core/base/bytes.h"
#include "core/tensor/fingerprint.h"
#include "core/tensor/shape.h"

namespace shw {

// Adds the elements of a box, row-major. `strides`, in elements, and `first`, where its first
// element stands, say which ones of the tensor they are; the tensor may count its elements along
// them in another order than row-major.
void add_box(Fingerprint& to, ExtentsView sizes, BytesView elements, std::size_t element_size,
             ExtentsView strides, std::int64_t first);

class TileFingerprint {
 public:
  // `tile` lies in `shape`; both are checked.
  TileFingerprint(ExtentsView shape, const Box& tile, std::size_t element_size);
  // The next bytes; an element may lie in two parts.
  void add(BytesView bytes);
  void add_zeros(std::uint64_t bytes);
  const Fingerprint& value() const { return value_; }
  bool is_complete() const { return left_ == 0 && held_ == 0; }

 private:
  void add_whole(const std::byte* elements, std::uint64_t count);
  void skip(std::uint64_t count);
  void step();

  std::size_t size_;
  std::uint64_t run_ = 1;         // elements that follow each other in the tensor
  std::uint64_t done_ = 0;        // of the run
  std::uint64_t left_ = 0;        // of the tile
  Extents at_, sizes_, strides_;  // of the dims outside of a run; strides in elements of the tensor
  std::uint64_t first_ = 0;       // where the run begins
  std::array<std::byte, 16> begun_{};
  std::size_t held_ = 0;
  Fingerprint value_;
};

}  // namespace shw
