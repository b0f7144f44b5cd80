#include "core/combine/low_rank.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace shw {
namespace {

constexpr std::int64_t kMoreColumns = 8;                     // additional columns for accuracy
constexpr std::int64_t kReadAtOnce = std::int64_t{4} << 20;  // elements
constexpr double kNoLength = 1e-12;                          // zero below this share of the longest
constexpr int kMaxSweeps = 60;
constexpr double kIsOrthogonal = 1e-14;

// Columns in sequence, each of `length` numbers.
struct Columns {
  std::size_t length = 0, count = 0;
  std::vector<double> values;
  Columns(std::size_t l, std::size_t c) : length(l), count(c), values(l * c) {}
  double* at(std::size_t column) { return values.data() + column * length; }
  const double* at(std::size_t column) const { return values.data() + column * length; }
};

double dot(const double* a, const double* b, std::size_t length) {
  double sum = 0;
  for (std::size_t i = 0; i < length; ++i) sum += a[i] * b[i];
  return sum;
}

// Reproducible pseudo-random numbers.
Columns random_columns(std::size_t length, std::size_t count) {
  Columns columns(length, count);
  std::uint64_t state = 0x9E3779B97F4A7C15u;
  for (double& value : columns.values) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    value = static_cast<double>(static_cast<std::int64_t>(state)) / 9.3e18;
  }
  return columns;
}

// Orthonormalises the columns; a column that depends on previous ones becomes 0. Returns R with old
// columns = new columns x R; row-major, count x count.
std::vector<double> orthogonalise(Columns& columns) {
  const std::size_t n = columns.count;
  std::vector<double> r(n * n);
  double longest = 0;
  for (std::size_t j = 0; j < n; ++j) {
    double* own = columns.at(j);
    const double before = std::sqrt(dot(own, own, columns.length));
    longest = std::max(longest, before);
    // Two passes suffice (Giraud, Langou 2005).
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t k = 0; k < j; ++k) {
        const double part = dot(columns.at(k), own, columns.length);
        r[k * n + j] += part;
        for (std::size_t i = 0; i < columns.length; ++i) own[i] -= part * columns.at(k)[i];
      }
    }
    const double length = std::sqrt(dot(own, own, columns.length));
    const bool is_none = length <= kNoLength * longest;
    r[j * n + j] = is_none ? 0 : length;
    for (std::size_t i = 0; i < columns.length; ++i) own[i] = is_none ? 0 : own[i] / length;
  }
  return r;
}

template <class Take>
Status each_block(const MatrixRows& matrix, Take take) {
  const std::int64_t step =
      std::max<std::int64_t>(kReadAtOnce / std::max<std::int64_t>(matrix.columns, 1), 1);
  for (std::int64_t first = 0; first < matrix.rows; first += step) {
    const std::int64_t count = std::min(step, matrix.rows - first);
    SHW_TRY(const std::vector<float> elements, matrix.read(first, count));
    take(static_cast<std::size_t>(first), static_cast<std::size_t>(count), elements);
  }
  return {};
}

// Computes matrix x columns.
Result<Columns> multiply_columns(const MatrixRows& matrix, const Columns& right) {
  Columns product(static_cast<std::size_t>(matrix.rows), right.count);
  std::vector<double> by_row(right.values.size());
  for (std::size_t j = 0; j < right.count; ++j) {
    for (std::size_t k = 0; k < right.length; ++k) by_row[k * right.count + j] = right.at(j)[k];
  }
  std::vector<double> sums(right.count);
  SHW_CHECK(
      each_block(matrix, [&](std::size_t first, std::size_t count, const std::vector<float>& rows) {
        for (std::size_t i = 0; i < count; ++i) {
          sums.assign(right.count, 0);
          for (std::size_t k = 0; k < right.length; ++k) {
            const double factor = rows[i * right.length + k];
            const double* from = by_row.data() + k * right.count;
            for (std::size_t j = 0; j < right.count; ++j) sums[j] += factor * from[j];
          }
          for (std::size_t j = 0; j < right.count; ++j) product.at(j)[first + i] = sums[j];
        }
      }));
  return product;
}

// Computes transposed matrix x columns; `squares` becomes the sum of squares of the matrix.
Result<Columns> multiply_transposed(const MatrixRows& matrix, const Columns& left,
                                    double& squares) {
  Columns product(static_cast<std::size_t>(matrix.columns), left.count);
  squares = 0;
  SHW_CHECK(
      each_block(matrix, [&](std::size_t first, std::size_t count, const std::vector<float>& rows) {
        for (float one : rows) squares += double{one} * one;
        for (std::size_t j = 0; j < left.count; ++j) {
          double* sums = product.at(j);
          for (std::size_t i = 0; i < count; ++i) {
            const double factor = left.at(j)[first + i];
            const float* row = rows.data() + i * product.length;
            for (std::size_t k = 0; k < product.length; ++k) sums[k] += factor * row[k];
          }
        }
      }));
  return product;
}

// Rotates columns p and q of both so that those of `a` become orthogonal; false if they were.
bool rotate_column_pair(Columns& a, Columns& v, std::size_t p, std::size_t q) {
  const double pp = dot(a.at(p), a.at(p), a.length), qq = dot(a.at(q), a.at(q), a.length);
  const double pq = dot(a.at(p), a.at(q), a.length);
  if (std::abs(pq) <= kIsOrthogonal * std::sqrt(pp * qq) || pq == 0) return false;
  const double zeta = (qq - pp) / (2 * pq);
  const double t = std::copysign(1.0, zeta) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
  const double c = 1 / std::sqrt(1 + t * t), s = c * t;
  for (Columns* both : {&a, &v}) {
    double* x = both->at(p);
    double* y = both->at(q);
    for (std::size_t i = 0; i < both->length; ++i) {
      const double before = x[i];
      x[i] = c * before - s * y[i];
      y[i] = s * before + c * y[i];
    }
  }
  return true;
}

// One-sided Jacobi: rotates `a` to orthogonal columns, whose lengths are the singular values.
// Returns the rotations v.
Columns jacobi_orthogonalise(Columns& a) {
  Columns v(a.count, a.count);
  for (std::size_t i = 0; i < a.count; ++i) v.at(i)[i] = 1;
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool is_turned = false;
    for (std::size_t p = 0; p + 1 < a.count; ++p) {
      for (std::size_t q = p + 1; q < a.count; ++q)
        is_turned = rotate_column_pair(a, v, p, q) || is_turned;
    }
    if (!is_turned) break;
  }
  return v;
}

// Writes the weighted sum of the columns.
void add_columns(const Columns& columns, const double* weights, double factor, float* to,
                 std::size_t stride) {
  for (std::size_t i = 0; i < columns.length; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < columns.count; ++j) sum += columns.at(j)[i] * weights[j];
    to[i * stride] = static_cast<float>(sum * factor);
  }
}

}  // namespace

Result<LowRank> factorise_low_rank(const MatrixRows& matrix, std::int64_t rank) {
  const std::int64_t most = std::min(matrix.rows, matrix.columns);
  const auto count = static_cast<std::size_t>(std::min(rank + kMoreColumns, most));
  Columns right = random_columns(static_cast<std::size_t>(matrix.columns), count);
  SHW_TRY(Columns left, multiply_columns(matrix, right));
  orthogonalise(left);
  double squares = 0;
  std::vector<double> r;
  for (int step = 0; step <= kPowerSteps; ++step) {
    SHW_TRY(right, multiply_transposed(matrix, left, squares));
    r = orthogonalise(right);
    if (step == kPowerSteps) break;
    SHW_TRY(left, multiply_columns(matrix, right));
    orthogonalise(left);
  }
  // matrix = left x r^T x right^T; the columns of r^T are the rows of r.
  Columns small(count, count);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) small.at(i)[j] = r[i * count + j];
  }
  const Columns turns = jacobi_orthogonalise(small);
  std::vector<std::pair<double, std::size_t>> order(count);
  for (std::size_t j = 0; j < count; ++j)
    order[j] = {std::sqrt(dot(small.at(j), small.at(j), count)), j};
  std::ranges::sort(order, std::greater<>());
  LowRank found;
  const auto wanted = static_cast<std::size_t>(rank);
  found.left.resize(static_cast<std::size_t>(matrix.rows) * wanted);
  found.right.resize(wanted * static_cast<std::size_t>(matrix.columns));
  double kept = 0;
  for (std::size_t k = 0; k < std::min(wanted, count); ++k) {
    const auto [length, j] = order[k];
    if (length <= kNoLength * order[0].first) break;
    kept += length * length;
    const double half = std::sqrt(length);
    // SVD of r^T: `small` holds U S, and `turns` the right singular vectors, so r^T x turns = U S.
    add_columns(left, small.at(j), half / length, found.left.data() + k, wanted);
    add_columns(right, turns.at(j), half, found.right.data() + k * right.length, 1);
  }
  found.norm = std::sqrt(squares);
  found.rest = std::sqrt(std::max(squares - kept, 0.0));
  return found;
}

}  // namespace shw
