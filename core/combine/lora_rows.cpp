#include "core/combine/lora_rows.h"

#include <cmath>
#include <utility>

namespace shw {
namespace {

std::int64_t row_length(ExtentsView shape) {
  std::int64_t length = 1;
  for (std::size_t d = 1; d < shape.size(); ++d) length *= shape[d];
  return length;
}

// Two factors of the rows of a product: `left` is [rows, r], `right` [r, length].
struct Factors {
  std::vector<float> left, right;
};
Result<Factors> factors_of(const LoraProduct& product, std::int64_t first, std::int64_t count) {
  Factors factors;
  const Box all_a = rows_box(product.a.shape, 0, product.a.shape[0]);
  if (!product.is_transposed) {
    SHW_TRY(factors.left, read_floats(product.b, rows_box(product.b.shape, first, count)));
    SHW_TRY(factors.right, read_floats(product.a, all_a));
    return factors;
  }
  Box columns = all_a;
  columns.offsets[1] = first;
  columns.sizes[1] = count;
  const auto rank = static_cast<std::size_t>(product.a.shape[0]);
  SHW_TRY(const auto a, read_floats(product.a, columns));
  SHW_TRY(const auto b, read_floats(product.b, rows_box(product.b.shape, 0, product.b.shape[0])));
  factors.left = transposed_matrix(a, rank, static_cast<std::size_t>(count));
  factors.right = transposed_matrix(b, b.size() / rank, rank);
  return factors;
}

void scale_rows(std::vector<float>& sums, const std::vector<float>& magnitudes,
                std::size_t length) {
  for (std::size_t i = 0; i < magnitudes.size(); ++i) {
    float* row = sums.data() + i * length;
    double squares = 0;
    for (std::size_t j = 0; j < length; ++j) squares += double{row[j]} * row[j];
    const float factor = magnitudes[i] / static_cast<float>(std::sqrt(squares));
    for (std::size_t j = 0; j < length; ++j) row[j] *= factor;
  }
}

// Scales the outputs of a whole [in, out] weight: the weights of one output are a column.
void scale_columns(std::vector<float>& sums, const std::vector<float>& magnitudes) {
  const std::size_t columns = magnitudes.size();
  std::vector<float> rows = transposed_matrix(sums, sums.size() / columns, columns);
  scale_rows(rows, magnitudes, rows.size() / columns);
  sums = transposed_matrix(rows, columns, rows.size() / columns);
}

}  // namespace

Result<std::vector<float>> lora_rows(const LoraProduct& product, std::int64_t first,
                                     std::int64_t count) {
  SHW_TRY(std::vector<float> sums,
          read_floats(product.weight, rows_box(product.weight.shape, first, count)));
  SHW_TRY(const Factors factors, factors_of(product, first, count));
  const auto rank = static_cast<std::size_t>(product.a.shape[0]);
  const auto length = static_cast<std::size_t>(row_length(product.weight.shape));
  const auto scale = static_cast<float>(product.scale);
  std::vector<float> added(length);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    added.assign(length, 0);
    for (std::size_t k = 0; k < rank; ++k) {
      const float factor = factors.left[i * rank + k];
      const float* right = factors.right.data() + k * length;
      for (std::size_t j = 0; j < length; ++j) added[j] += factor * right[j];
    }
    float* row = sums.data() + i * length;
    for (std::size_t j = 0; j < length; ++j) row[j] += scale * added[j];
  }
  if (!product.magnitude) return sums;
  const ReadableTensor& magnitude = *product.magnitude;
  if (product.is_transposed) {
    SHW_TRY(const auto all,
            read_floats(magnitude, rows_box(magnitude.shape, 0, magnitude.shape[0])));
    scale_columns(sums, all);
  } else {
    SHW_TRY(const auto some, read_floats(magnitude, rows_box(magnitude.shape, first, count)));
    scale_rows(sums, some, length);
  }
  return sums;
}

}  // namespace shw
