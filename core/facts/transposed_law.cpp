#include "core/facts/transposed_law.h"

#include <algorithm>
#include <cmath>

#include "core/facts/block_order.h"
#include "core/facts/value_reader.h"

namespace shw {
namespace {

constexpr double kMargin = 0.3;  // P20
// The difference of two cosines of unrelated matrices of n elements has a standard deviation of
// about sqrt(2 / n): six of them are asked for, 0.3 from 800 elements on and 0.85 with 100.
constexpr double kDeviations = 6;
constexpr std::int64_t kLeastCompared = 100;
constexpr std::int64_t kLeastSampled = 1024;
constexpr std::int64_t kMostCompared = std::int64_t{1} << 22;  // elements of one tensor

// `rows` x `columns` in the truth, so the other way round in the image.
struct MatrixSizes {
  std::int64_t rows = 0, columns = 0;
  std::int64_t step = 1;  // every step-th row and column is looked at
};

struct Sums {
  double truth = 0, crossed = 0, straight = 0;   // squares
  double truth_crossed = 0, truth_straight = 0;  // products
  std::int64_t count = 0;

  double cosine(double product, double other) const {
    return truth > 0 && other > 0 ? product / std::sqrt(truth * other) : 0;
  }
  double margin() const {
    return cosine(truth_crossed, crossed) - cosine(truth_straight, straight);
  }
  bool is_finite() const { return std::isfinite(truth + crossed + straight); }
};

// Element (i, j) of the truth beside (j, i) of the image, and beside the one in the same place.
Sums sums_of(const TensorValues& image, const TensorValues& truth, const MatrixSizes& matrix,
             std::int64_t base) {
  Sums sums;
  auto value = [&](const TensorValues& of, std::int64_t at) {
    return value_at(of.dtype, of.bytes, static_cast<std::size_t>(base + at));
  };
  for (std::int64_t i = 0; i < matrix.rows; i += matrix.step) {
    for (std::int64_t j = 0; j < matrix.columns; j += matrix.step) {
      double there = value(truth, i * matrix.columns + j);
      double crossed = value(image, j * matrix.rows + i);
      double straight = value(image, i * matrix.columns + j);
      sums.truth += there * there;
      sums.crossed += crossed * crossed;
      sums.straight += straight * straight;
      sums.truth_crossed += there * crossed;
      sums.truth_straight += there * straight;
      ++sums.count;
    }
  }
  return sums;
}

MatrixSizes matrix_of(ExtentsView truth, std::int64_t matrices) {
  MatrixSizes matrix{truth[truth.size() - 2], truth[truth.size() - 1], 1};
  std::int64_t most = std::max(kMostCompared / matrices, 4 * kLeastSampled);
  auto looked_at = [&] {
    return ((matrix.rows - 1) / matrix.step + 1) * ((matrix.columns - 1) / matrix.step + 1);
  };
  while (looked_at() > most) ++matrix.step;
  return matrix;
}

// By the law. Matrices of zeros in both say nothing; one that is not clearly transposed speaks
// against all.
void judge_by_law(const TensorValues& image, const TensorValues& truth, OrientationFound& found) {
  ExtentsView shape = truth.shape;
  std::int64_t elements = shape[shape.size() - 2] * shape[shape.size() - 1];
  if (!has_values(truth.dtype) || elements < kLeastCompared) return;
  MatrixSizes matrix = matrix_of(shape, found.matrices);
  found.sampled = matrix.step > 1;
  found.margin = 2;
  std::int64_t against = 0;
  for (std::int64_t m = 0; m < found.matrices; ++m) {
    Sums sums = sums_of(image, truth, matrix, m * elements);
    found.compared += sums.count;
    if (sums.truth == 0 && sums.straight == 0 && sums.crossed == 0) continue;
    double asked =
        std::max(kMargin, kDeviations * std::sqrt(2.0 / static_cast<double>(sums.count)));
    bool decided = sums.is_finite() && sums.margin() > asked;
    if (decided) found.margin = std::min(found.margin, sums.margin());
    ++(decided ? found.transposed : against);
    // One that is not, and none that is, after several: another step, or another model.
    if (found.transposed == 0 && against == 8) return;
  }
  if (found.transposed != 0)
    found.orientation = against == 0 ? Orientation::kCrossed : Orientation::kMixed;
}

}  // namespace

bool swapped_last_two(ExtentsView a, ExtentsView b) {
  if (a.size() != b.size() || a.size() < 2) return false;
  std::size_t n = a.size();
  return a[n - 1] == b[n - 2] && a[n - 2] == b[n - 1] && a[n - 1] != a[n - 2] &&
         same(a.first(n - 2), b.first(n - 2));
}

bool is_square(ExtentsView shape) {
  return shape.size() >= 2 && shape[shape.size() - 1] == shape[shape.size() - 2];
}

OrientationFound find_orientation(const TensorValues& image, const TensorValues& truth) {
  OrientationFound found;
  bool straight = same(image.shape, truth.shape), equal_bytes = image.bytes == truth.bytes;
  std::size_t n = truth.shape.size();
  if (straight && equal_bytes) {
    found.orientation = Orientation::kEqual;
    found.exact = true;
    return found;
  }
  bool crossed = swapped_last_two(image.shape, truth.shape) || (straight && is_square(truth.shape));
  if (!crossed || image.dtype != truth.dtype || image.bytes.size() != truth.bytes.size() ||
      image.bytes.empty())
    return found;
  found.matrices = volume(ExtentsView(truth.shape).first(n - 2)).value_or(0);
  if (is_transpose(image.bytes, truth.bytes, truth.shape, size_of(truth.dtype))) {
    found.orientation = Orientation::kCrossed;
    found.exact = true;
    found.transposed = found.matrices;
  } else if (equal_bytes) {
    found.orientation = Orientation::kRelabelled;
    found.exact = true;
  } else {
    judge_by_law(image, truth, found);
  }
  return found;
}

}  // namespace shw
