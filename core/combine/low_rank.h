// The product of two thin matrices that is nearest to a matrix.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/result.h"

namespace shw {

// [rows, columns], read a few rows at a time.
struct MatrixRows {
  std::int64_t rows = 0, columns = 0;
  std::function<Result<std::vector<float>>(std::int64_t first, std::int64_t count)> read;
};

// left [rows, rank] x right [rank, columns], row-major. Columns of `left` and rows of `right`
// beyond the matrix's own rank are zero.
struct LowRank {
  std::vector<float> left, right;
  double norm = 0;  // of the matrix (Frobenius)
  double rest = 0;  // of what the product leaves out
};

// By subspace iteration from a fixed random start (Halko, Martinsson, Tropp 2011, algorithm 4.4):
// the rest is that of the truncated singular value decomposition, or little more. The matrix is
// read 2 * kPowerSteps + 2 times and never held.
inline constexpr int kPowerSteps = 3;
Result<LowRank> low_rank_of(const MatrixRows& matrix, std::int64_t rank);

}  // namespace shw
