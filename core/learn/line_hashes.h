// Hashes of the lines of tensors: of rows, which are runs of the last dim, and of columns of the
// last two dims. Two lines with equal elements have equal hashes, whatever tensors they lie in.
// Memory is 8 bytes per line and a few MiB per thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/tensor/shape.h"

namespace shw {

enum class LineKind : std::uint8_t { kRows, kColumns };

struct AskedLines {
  TensorId tensor{};
  Dtype dtype = Dtype::kUnknown;  // to which elements are cast; kUnknown: none
  LineKind kind = LineKind::kRows;
};

struct LineHashes {
  Extents dims;                       // that count the lines
  std::vector<std::uint64_t> hashes;  // row-major over `dims`
  bool is_read = false;               // false: the tensor has gaps, or cannot be read
};

// A line whose elements are all equal, as in norms of ones: many tensors have it.
inline bool is_constant_line(std::uint64_t hash) {
  return (hash & 1) == 0;
}

// How many dims at the end of a shape are one line. Lines of fewer than 16 bytes would be found by
// chance, so that such dims are merged.
std::size_t dims_in_line(ExtentsView shape, std::size_t width);

// One answer for each of `asked`. An error only if cancelled.
Result<std::vector<LineHashes>> line_hashes(const Checkpoint& checkpoint,
                                            std::span<const AskedLines> asked, Progress* progress);

}  // namespace shw
