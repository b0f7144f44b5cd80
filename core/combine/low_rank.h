// Approximates a matrix by the nearest product of two thin matrices.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/result.h"

namespace shw {

// A matrix [rows, columns] that is read a few rows at a time.
struct MatrixRows {
  std::int64_t rows = 0, columns = 0;
  std::function<Result<std::vector<float>>(std::int64_t first, std::int64_t count)> read;
};

// left [rows, rank] x right [rank, columns], row-major. If the matrix has a lower rank, the
// remaining columns of `left` and rows of `right` are zero.
struct LowRank {
  std::vector<float> left, right;
  double norm = 0;  // Frobenius norm of the matrix
  double rest = 0;  // Frobenius norm of the part that the product omits
};

// Randomised subspace iteration with a fixed seed (Halko, Martinsson, Tropp 2011, algorithm 4.4).
// The approximation error is that of the truncated SVD, or slightly more. Reads the matrix 2 *
// kPowerSteps + 2 times, row block by row block.
inline constexpr int kPowerSteps = 3;
Result<LowRank> factorise_low_rank(const MatrixRows& matrix, std::int64_t rank);

}  // namespace shw
