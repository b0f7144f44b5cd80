// Lines of a whole tensor, or of one cell of a stacked tensor.
#pragma once

#include <cstdint>
#include <span>

#include "core/learn/fit_order.h"
#include "core/tensor/shape.h"

namespace shw {

struct LineCell {
  std::span<const std::uint64_t> hashes;
  ExtentsView dims;
};

// One number per index of dim `d`, from all lines with that index.
LineSequence lines_along(const LineCell& cell, std::size_t d);

// Cell number `cell` of the first `lead` dims.
LineCell cell_of_lines(std::span<const std::uint64_t> hashes, ExtentsView dims, std::size_t lead,
                       std::size_t cell);

}  // namespace shw
