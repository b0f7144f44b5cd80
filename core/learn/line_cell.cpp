#include "core/learn/line_cell.h"

namespace shw {
namespace {

std::uint64_t mixed_line(std::uint64_t sum, std::uint64_t line) {
  sum = (sum ^ line) * 0x9E3779B97F4A7C15ULL;
  return sum ^ (sum >> 29);
}

}  // namespace

LineSequence lines_along(const LineCell& cell, std::size_t d) {
  std::size_t outer = 1, inner = 1;
  for (std::size_t e = 0; e < cell.dims.size(); ++e) {
    const auto size = static_cast<std::size_t>(cell.dims[e]);
    if (e < d) outer *= size;
    if (e > d) inner *= size;
  }
  const auto count = static_cast<std::size_t>(cell.dims[d]);
  if (outer == 1 && inner == 1) return {cell.hashes.begin(), cell.hashes.end()};
  LineSequence out(count, 0);
  for (std::size_t o = 0; o < outer; ++o) {
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t n = 0; n < inner; ++n)
        out[i] = mixed_line(out[i], cell.hashes[(o * count + i) * inner + n]);
    }
  }
  return out;
}

LineCell cell_of_lines(std::span<const std::uint64_t> hashes, ExtentsView dims, std::size_t lead,
                       std::size_t cell) {
  const ExtentsView inner = dims.subspan(lead);
  const auto count = static_cast<std::size_t>(volume(inner).value_or(0));
  return {hashes.subspan(cell * count, count), inner};
}

}  // namespace shw
