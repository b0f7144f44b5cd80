#include "core/facts/reference/transposed_constraint.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/facts/reference/likeness.h"
#include "core/facts/values/equal_elements.h"
#include "core/facts/values/value_reader.h"
#include "core/tiles/blocks.h"

namespace shw {
namespace {

// Least margin for matrices of any size. The difference of two cosines of unrelated matrices with n
// elements has standard deviation sqrt(2 / n): the margin is 0.3 from 800 elements on, 0.85 for
// 100.
constexpr double kMargin = 0.3;
constexpr std::int64_t kMinCompared = 100;
constexpr std::int64_t kMinSampled = 1024;
constexpr std::int64_t kMaxElementsCompared = std::int64_t{1} << 22;  // per tensor

// Size of a matrix as in the reference: `rows` x `columns`; the checkpoint's tensor may have
// columns x rows.
struct MatrixSizes {
  std::int64_t rows = 0, columns = 0;
  std::int64_t step = 1;  // every step-th row and column is used

  std::int64_t sampled_row_count() const { return (rows - 1) / step + 1; }
  std::int64_t sampled_column_count() const { return (columns - 1) / step + 1; }
  std::int64_t sampled_elements() const { return sampled_row_count() * sampled_column_count(); }
};

struct Sums {
  double truth = 0, crossed = 0, straight = 0;   // sums of squares
  double truth_crossed = 0, truth_straight = 0;  // sums of products
  std::int64_t count = 0;

  double cosine(double product, double other) const {
    return truth > 0 && other > 0 ? product / std::sqrt(truth * other) : 0;
  }
  // -W is not the transpose of W although its cosine with W is negative.
  double margin() const {
    return cosine(truth_crossed, crossed) - std::abs(cosine(truth_straight, straight));
  }
  bool is_finite() const { return std::isfinite(truth + crossed + straight); }
};

MatrixSizes sampled_matrix_sizes(ExtentsView truth, std::int64_t matrices) {
  MatrixSizes matrix{truth[truth.size() - 2], truth[truth.size() - 1], 1};
  std::int64_t most = std::max(kMaxElementsCompared / matrices, 4 * kMinSampled);
  while (matrix.sampled_elements() > most) ++matrix.step;
  return matrix;
}

// Elements (i, j) at multiples of `step` of several matrices, picked from rows in arrival order. A
// matrix may be viewed with another width.
class MatrixGrid {
 public:
  MatrixGrid(std::int64_t height, std::int64_t width, std::int64_t step, std::size_t element)
      : height_((height - 1) / step + 1),
        width_(width),
        step_(step),
        across_((width - 1) / step + 1),
        element_(element) {}

  void begin(std::int64_t matrices) {
    bytes_.assign(static_cast<std::size_t>(matrices * height_ * across_) * element_, std::byte{});
  }
  // Elements from index `first` of the matrix on.
  void add(std::int64_t matrix, std::int64_t first, BytesView row) {
    const std::int64_t last = first + static_cast<std::int64_t>(row.size() / element_);
    std::int64_t i = first / width_;
    for (i += (step_ - i % step_) % step_; i * width_ < last; i += step_) {
      const std::int64_t begin = i * width_;
      std::int64_t j = std::max(first - begin, std::int64_t{0});
      for (j += (step_ - j % step_) % step_; j < width_ && begin + j < last; j += step_)
        std::memcpy(&bytes_[at(matrix, i / step_, j / step_)],
                    row.data() + static_cast<std::size_t>(begin + j - first) * element_, element_);
    }
  }
  // The element in sampled row i and sampled column j.
  BytesView element(std::int64_t matrix, std::int64_t i, std::int64_t j) const {
    return BytesView(bytes_).subspan(at(matrix, i, j), element_);
  }
  double value(Dtype dtype, std::int64_t matrix, std::int64_t i, std::int64_t j) const {
    return value_at(dtype, bytes_, at(matrix, i, j) / element_);
  }

 private:
  std::size_t at(std::int64_t matrix, std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>((matrix * height_ + i) * across_ + j) * element_;
  }

  const std::int64_t height_, width_, step_, across_;
  const std::size_t element_;
  Bytes bytes_;
};

bool same_element(BytesView a, BytesView b) {
  return std::equal(a.begin(), a.end(), b.begin());
}

// Reads both tensors, a few matrices at a time.
class OrientationPass {
 public:
  OrientationPass(const PiecedTensor& image, const PiecedTensor& truth)
      : image_(image), truth_(truth), leading_(truth.shape.begin(), truth.shape.end() - 2) {
    found_.matrices = volume(leading_).value_or(0);
    matrix_ = sampled_matrix_sizes(truth.shape, found_.matrices);
    is_square_ = same(image.shape, truth.shape);
    const std::size_t element = size_of(truth.dtype);
    true_.emplace(matrix_.rows, matrix_.columns, matrix_.step, element);
    transposed_.emplace(matrix_.columns, matrix_.rows, matrix_.step, element);
    // In square matrices both readings use one grid, because positions are equal.
    if (!is_square_) untransposed_.emplace(matrix_.rows, matrix_.columns, matrix_.step, element);
    uses_constraint_ = has_values(truth.dtype) && matrix_.rows * matrix_.columns >= kMinCompared;
    found_.sampled = uses_constraint_ && matrix_.step > 1;
    margin_ = 2;
  }

  std::optional<OrientationFound> run() {
    Blocks groups{leading_, block_sizes(leading_, matrices_per_block(), {})};
    while (!has_enough_evidence() && groups.next()) {
      if (!check_matrices(groups.block)) return std::nullopt;
    }
    return answer();
  }

 private:
  // Number of matrices in memory at once, limited by the elements of each.
  std::int64_t matrices_per_block() const {
    return std::max<std::int64_t>(
        1, kMaxElementsCompared / std::max<std::int64_t>(matrix_.sampled_elements(), 1));
  }
  // Several matrices are not transposed: another step or model. Tensors that may still be bytewise
  // equal are read completely.
  bool has_enough_evidence() const {
    return found_.transposed == 0 && against_ >= 8 && !may_be_transposed_ && !may_be_untransposed_;
  }

  // Reads a group of matrices: adds to the fingerprint and fills the grids.
  bool pass(const PiecedTensor& tensor, const Box& group, Fingerprint& sum, MatrixGrid& own,
            MatrixGrid* other) const {
    const Extents strides = row_major_strides(tensor.shape);
    const Extents in_group = row_major_strides(group.sizes);
    const std::size_t n = tensor.shape.size();
    Box box{Extents(n, 0), tensor.shape};
    for (std::size_t d = 0; d + 2 < n; ++d) {
      box.offsets[d] = group.offsets[d];
      box.sizes[d] = group.sizes[d];
    }
    const std::size_t element = size_of(tensor.dtype);
    return tensor.pass(box, [&](const Box& piece, BytesView elements) {
      add_box(sum, piece.sizes, elements, element, strides, index_at(piece.offsets, strides));
      each_row(piece, elements, element, strides,
               [&](const Extents& at, std::int64_t, BytesView row) {
                 std::int64_t matrix = 0;
                 for (std::size_t d = 0; d + 2 < n; ++d)
                   matrix += (at[d] - group.offsets[d]) * in_group[d];
                 const std::int64_t first = at[n - 2] * tensor.shape[n - 1] + at[n - 1];
                 own.add(matrix, first, row);
                 if (other != nullptr) other->add(matrix, first, row);
               });
    });
  }

  bool check_matrices(const Box& group) {
    const std::int64_t matrices = volume(group.sizes).value_or(0);
    for (auto* grid : {&true_, &transposed_, &untransposed_}) {
      if (*grid) (*grid)->begin(matrices);
    }
    if (!pass(image_, group, image_sum_, *transposed_, untransposed_ ? &*untransposed_ : nullptr) ||
        !pass(truth_, group, truth_sum_, *true_, nullptr))
      return false;
    for (std::int64_t m = 0; m < matrices; ++m) {
      compare_bytes(m);
      if (uses_constraint_ && !has_enough_evidence()) judge(m);
    }
    return true;
  }

  // Compares element (i, j) of the reference with (j, i) and (i, j) of the tensor.
  void compare_bytes(std::int64_t m) {
    for (std::int64_t i = 0;
         i < matrix_.sampled_row_count() && (may_be_transposed_ || may_be_untransposed_); ++i) {
      for (std::int64_t j = 0; j < matrix_.sampled_column_count(); ++j) {
        const BytesView there = true_->element(m, i, j);
        may_be_transposed_ =
            may_be_transposed_ && same_element(there, transposed_->element(m, j, i));
        may_be_untransposed_ = may_be_untransposed_ &&
                               same_element(there, grid_of_either_orientation().element(m, i, j));
      }
    }
  }

  const MatrixGrid& grid_of_either_orientation() const {
    return untransposed_ ? *untransposed_ : *transposed_;
  }

  Sums sums_of(std::int64_t m) const {
    Sums sums;
    for (std::int64_t i = 0; i < matrix_.sampled_row_count(); ++i) {
      for (std::int64_t j = 0; j < matrix_.sampled_column_count(); ++j) {
        const double there = true_->value(truth_.dtype, m, i, j);
        const double crossed = transposed_->value(truth_.dtype, m, j, i);
        const double straight = grid_of_either_orientation().value(truth_.dtype, m, i, j);
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

  // Judges by cosines. Matrices that are zero in both are skipped; one that is not clearly
  // transposed excludes all.
  void judge(std::int64_t m) {
    const Sums sums = sums_of(m);
    found_.compared += sums.count;
    if (sums.truth == 0 && sums.straight == 0 && sums.crossed == 0) return;
    const double asked =
        required_margin_of(kMargin, std::sqrt(2.0 / static_cast<double>(sums.count)));
    const bool decided = sums.is_finite() && sums.margin() > asked;
    if (decided) margin_ = std::min(margin_, sums.margin());
    ++(decided ? found_.transposed : against_);
  }

  std::optional<OrientationFound> answer() {
    const bool equal_bytes = may_be_untransposed_ && image_sum_ == truth_sum_;
    if (equal_bytes && is_square_) {
      auto same = are_equal_elements(image_, truth_);
      if (!same) return std::nullopt;
      if (*same) return exact_orientation_result(Orientation::kEqual);
    }
    if (may_be_transposed_) {
      auto is_crossed = are_transposed_elements(image_, truth_);
      if (!is_crossed) return std::nullopt;
      if (*is_crossed) {
        found_.transposed = found_.matrices;
        return exact_orientation_result(Orientation::kSwappedDims);
      }
    }
    if (equal_bytes) return exact_orientation_result(Orientation::kRelabelled);
    if (!uses_constraint_) return found_;
    found_.margin = margin_;
    if (found_.transposed != 0)
      found_.orientation = against_ == 0 ? Orientation::kSwappedDims : Orientation::kMixed;
    return found_;
  }

  OrientationFound exact_orientation_result(Orientation orientation) const {
    OrientationFound out;
    out.orientation = orientation;
    out.exact = true;
    if (orientation == Orientation::kSwappedDims) out.transposed = found_.matrices;
    if (orientation != Orientation::kEqual) out.matrices = found_.matrices;
    return out;
  }

  const PiecedTensor &image_, &truth_;
  const Extents leading_;
  MatrixSizes matrix_;
  bool is_square_ = false, uses_constraint_ = false;
  std::optional<MatrixGrid> true_, transposed_,
      untransposed_;  // the last only for non-square matrices
  bool may_be_transposed_ = true, may_be_untransposed_ = true;  // according to the grids
  Fingerprint image_sum_, truth_sum_;
  std::int64_t against_ = 0;
  double margin_ = 0;
  OrientationFound found_;
};

// Compares tensors whose shapes are not transposes of each other.
std::optional<OrientationFound> compare_untransposed(const PiecedTensor& image,
                                                     const PiecedTensor& truth) {
  OrientationFound found;
  if (image.dtype != truth.dtype || !same(image.shape, truth.shape)) return found;
  auto same_elements = are_equal_elements(image, truth);
  if (!same_elements) return std::nullopt;
  found.exact = *same_elements;
  if (found.exact) found.orientation = Orientation::kEqual;
  return found;
}

}  // namespace

bool differ_by_last_dims_swap(ExtentsView a, ExtentsView b) {
  if (a.size() != b.size() || a.size() < 2) return false;
  std::size_t n = a.size();
  return a[n - 1] == b[n - 2] && a[n - 2] == b[n - 1] && a[n - 1] != a[n - 2] &&
         same(a.first(n - 2), b.first(n - 2));
}

bool is_square(ExtentsView shape) {
  return shape.size() >= 2 && shape[shape.size() - 1] == shape[shape.size() - 2];
}

std::optional<OrientationFound> find_orientation(const PiecedTensor& image,
                                                 const PiecedTensor& truth) {
  const bool is_crossed = differ_by_last_dims_swap(image.shape, truth.shape) ||
                          (same(image.shape, truth.shape) && is_square(truth.shape));
  if (!is_crossed || image.dtype != truth.dtype || volume(truth.shape).value_or(0) == 0)
    return compare_untransposed(image, truth);
  return OrientationPass(image, truth).run();
}

std::uint64_t orientation_check_bytes(ExtentsView shape, Dtype dtype) {
  const auto elements = static_cast<std::uint64_t>(volume(shape).value_or(0));
  // Memory for three grids per matrix, each whole or a few thousand elements.
  return 3 * size_of(dtype) * std::min(elements, std::uint64_t{kMaxElementsCompared});
}

}  // namespace shw
