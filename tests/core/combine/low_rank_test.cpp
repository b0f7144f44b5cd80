// Matrices of known singular values: products of rotations and a diagonal.
#include "core/combine/low_rank.h"

#include <cmath>
#include <random>

#include "core/combine/combined_models.h"

using namespace shw;
using namespace shw::test;

namespace {

MatrixRows rows_of(const Numbers& numbers, std::int64_t rows, std::int64_t columns) {
  return {rows, columns, [&numbers, columns](std::int64_t first, std::int64_t count) {
            const auto begin = numbers.begin() + first * columns;
            return Result<std::vector<float>>(std::vector<float>(begin, begin + count * columns));
          }};
}

double distance(const Numbers& matrix, const LowRank& found, std::size_t rows, std::size_t rank,
                std::size_t columns) {
  double squares = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      double sum = matrix[i * columns + j];
      for (std::size_t k = 0; k < rank; ++k)
        sum -= double{found.left[i * rank + k]} * found.right[k * columns + j];
      squares += sum * sum;
    }
  }
  return std::sqrt(squares);
}

// Exchanges rows and mixes them by rotations of pairs, which keep singular values.
Numbers rotated_diagonal(const std::vector<double>& values, std::size_t rows, std::size_t columns) {
  std::vector<double> matrix(rows * columns);
  for (std::size_t i = 0; i < values.size(); ++i) matrix[i * columns + i] = values[i];
  std::mt19937 random(4);
  for (int turn = 0; turn < 400; ++turn) {
    const double angle = static_cast<double>(random() % 1000) / 100;
    const double c = std::cos(angle), s = std::sin(angle);
    const bool is_row = turn % 2 == 0;
    const std::size_t size = is_row ? rows : columns, length = is_row ? columns : rows;
    const std::size_t p = random() % size, q = (p + 1 + random() % (size - 1)) % size;
    for (std::size_t k = 0; k < length; ++k) {
      double& x = is_row ? matrix[p * columns + k] : matrix[k * columns + p];
      double& y = is_row ? matrix[q * columns + k] : matrix[k * columns + q];
      const double before = x;
      x = c * before - s * y;
      y = s * before + c * y;
    }
  }
  return {matrix.begin(), matrix.end()};
}

}  // namespace

TEST_CASE("low_rank: the rest is that of the singular values that are left out") {
  const std::vector<double> values{9, 5, 4, 3, 2, 1, 0.5, 0.25, 0.125, 0.1, 0.05, 0.02};
  for (const auto& [rows, columns] : {std::pair{12, 30}, std::pair{40, 12}, std::pair{12, 12}}) {
    const auto r = static_cast<std::size_t>(rows), c = static_cast<std::size_t>(columns);
    const Numbers matrix = rotated_diagonal(values, r, c);
    for (std::size_t rank : {1u, 3u, 8u, 12u, 20u}) {
      CAPTURE(rank);
      auto found =
          factorise_low_rank(rows_of(matrix, rows, columns), static_cast<std::int64_t>(rank));
      REQUIRE(found.has_value());
      double left = 0, all = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        all += values[i] * values[i];
        if (i >= rank) left += values[i] * values[i];
      }
      CHECK(found->norm == doctest::Approx(std::sqrt(all)).epsilon(1e-5));
      CHECK(found->rest == doctest::Approx(std::sqrt(left)).epsilon(1e-3));
      CHECK(distance(matrix, *found, r, rank, c) == doctest::Approx(std::sqrt(left)).epsilon(1e-3));
    }
  }
}

TEST_CASE("low_rank: a matrix of zeros has no rest, and one that cannot be read is an error") {
  const Numbers zeros(20, 0);
  auto found = factorise_low_rank(rows_of(zeros, 4, 5), 2);
  REQUIRE(found.has_value());
  CHECK(found->rest == 0);
  CHECK(found->left == Numbers(8, 0));
  CHECK(found->right == Numbers(10, 0));
  const MatrixRows broken{4, 5, [](std::int64_t, std::int64_t) -> Result<std::vector<float>> {
                            return fail(ErrorKind::kIo, "broken");
                          }};
  CHECK_FALSE(factorise_low_rank(broken, 2).has_value());
}
