// Reads a strided box of a source into memory. Only the byte runs of the box and small gaps between
// them are read, however large the storage is.
#pragma once

#include <functional>
#include <optional>

#include "core/io/source.h"
#include "core/tensor/shape.h"

namespace shw {

// A box copied into contiguous memory, with dimensions ordered as in the source, smallest stride
// first. Strides and offset are in bytes and refer to the dimensions of the box.
struct PackedBox {
  Extents strides;
  std::int64_t offset = 0;  // of the first element of the box
  std::int64_t length = 0;  // total bytes
};
// A stride of 0 repeats an element without taking memory. nullopt on int64 overflow.
std::optional<PackedBox> packed(ExtentsView sizes, ExtentsView strides, std::size_t element);

// Calls visit(source byte, byte in the packed box, length) for each contiguous run of
// the box, in the order of the packed box. Stops and returns false when a call returns
// false.
bool for_each_run(
    std::int64_t first, ExtentsView sizes, ExtentsView strides, std::size_t element,
    const std::function<bool(std::int64_t at, std::size_t done, std::int64_t length)>& visit);

// Fills `out` (packed().length bytes) with the box whose first element is at byte `first`.
Status gather(const ByteSource& source, std::int64_t first, ExtentsView sizes, ExtentsView strides,
              std::size_t element, std::span<std::byte> out);

// Reads strided elements (byte strides) from `first` on as a row-major array. Reuses the memory of
// `to`.
Status read_strided(const ByteSource& source, std::int64_t first, ExtentsView sizes,
                    ExtentsView strides, std::size_t element, Bytes& to);

// Reads a box of a row-major array of `sizes` at byte `offset`.
Status read_box(const ByteSource& source, std::uint64_t offset, ExtentsView sizes, const Box& box,
                std::size_t element, Bytes& to);

}  // namespace shw
