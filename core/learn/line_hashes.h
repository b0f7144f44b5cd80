// Hashes of the lines of tensors: of rows, which are runs of the last dim, and of columns of the
// last two dims. Two lines with equal elements have equal hashes, whatever tensors they are in.
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

struct LineQuery {
  TensorId tensor{};
  Dtype dtype = Dtype::kUnknown;  // to which elements are cast; kUnknown: not cast
  LineKind kind = LineKind::kRows;
};

struct LineHashes {
  Extents dims;                       // dims without those inside a line
  std::vector<std::uint64_t> hashes;  // row-major over `dims`
  bool is_read = false;               // false: the tensor has gaps, or cannot be read
};

// True if all elements of the line are equal, as in norms of ones: many tensors have such lines.
inline bool is_constant_line(std::uint64_t hash) {
  return (hash & 1) == 0;
}

// Number of trailing dims that form one line. Lines under 16 bytes would match by chance, so short
// dims are merged.
std::size_t dims_in_line(ExtentsView shape, std::size_t width);

// One result per element of `asked`. An error only if cancelled.
Result<std::vector<LineHashes>> line_hashes(const Checkpoint& checkpoint,
                                            std::span<const LineQuery> asked, Progress* progress);

}  // namespace shw
