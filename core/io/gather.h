// Reads a strided box of a source into memory: only the bytes around it are read, however large
// what it lies in is.
#pragma once

#include <functional>
#include <optional>

#include "core/io/source.h"
#include "core/tensor/shape.h"

namespace shw {

// The elements of a box side by side in memory, in the order in which they lie in the source: its
// narrowest stride first. Strides and offset in bytes, of the box's own dimensions.
struct PackedBox {
  Extents strides;
  std::int64_t offset = 0;  // of the box's first element
  std::int64_t length = 0;  // bytes in all
};
// A stride of 0 repeats an element and takes no room. Nothing where that leaves int64.
std::optional<PackedBox> packed(ExtentsView sizes, ExtentsView strides, std::size_t element);

// The runs of bytes that the box is made of, in the order in which they come to lie side by side:
// visit(byte of the source, byte of the packed box, length). Until one is false, which is then
// told.
bool each_run(
    std::int64_t first, ExtentsView sizes, ExtentsView strides, std::size_t element,
    const std::function<bool(std::int64_t at, std::size_t done, std::int64_t length)>& visit);

// Fills `out`, packed().length bytes, with the box whose first element begins at byte `first`.
Status gather(const ByteSource& source, std::int64_t first, ExtentsView sizes, ExtentsView strides,
              std::size_t element, std::span<std::byte> out);

}  // namespace shw
