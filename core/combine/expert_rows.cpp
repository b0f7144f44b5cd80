#include "core/combine/expert_rows.h"

#include <cstring>

#include "core/facts/values/computed_tensors.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

// Rows [first, first + count) of one expert.
struct ExpertRows {
  std::int64_t expert = 0, first = 0, count = 0;
};

Box box_of(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
  return {{row, column}, {rows, columns}};
}

// A [rank, in] of the expert and B [out, rank * experts] of all experts, limited to the needed
// rows.
struct ExpertFactors {
  std::vector<float> a, b;
  std::size_t inputs = 0, outputs = 0;
};
Result<ExpertFactors> factors_of(const ExpertProduct& product, const ExpertRows& rows) {
  const std::int64_t rank_row = rows.expert * product.rank;
  const bool cuts_inputs = product.is_input_first;
  const std::int64_t inputs = cuts_inputs ? rows.count : product.a.shape[1];
  const std::int64_t outputs = cuts_inputs ? product.b.shape[0] : rows.count;
  ExpertFactors factors;
  factors.inputs = static_cast<std::size_t>(inputs);
  factors.outputs = static_cast<std::size_t>(outputs);
  SHW_TRY(factors.a, read_floats(product.a, box_of(rank_row, product.rank,
                                                   cuts_inputs ? rows.first : 0, inputs)));
  SHW_TRY(factors.b, read_floats(product.b, box_of(cuts_inputs ? 0 : rows.first, outputs, 0,
                                                   product.b.shape[1])));
  return factors;
}

// PEFT rounds the product to the parameter's dtype before adding it.
Status round_to_dtype(Dtype dtype, std::vector<float>& numbers) {
  if (dtype == Dtype::kFloat32) return {};
  SHW_TRY(const Bytes narrow, rounded_to(dtype, numbers));
  SHW_TRY(const Bytes again, cast_elements(dtype, narrow, Dtype::kFloat32));
  std::memcpy(numbers.data(), again.data(), again.size());
  return {};
}

// Adds the product of A and B for these rows to `sums`.
Status add_product_to(const ExpertProduct& product, const ExpertRows& rows, float* sums) {
  SHW_TRY(const ExpertFactors factors, factors_of(product, rows));
  const auto scale = static_cast<float>(product.scale);
  const auto rank = static_cast<std::size_t>(product.rank);
  const auto experts = static_cast<std::size_t>(product.experts);
  std::vector<float> added(factors.inputs);
  for (std::size_t output = 0; output < factors.outputs; ++output) {
    added.assign(factors.inputs, 0);
    const float* b = factors.b.data() + output * rank * experts;
    for (std::size_t k = 0; k < rank; ++k) {
      const float factor = b[k * experts + static_cast<std::size_t>(rows.expert)];
      const float* a = factors.a.data() + k * factors.inputs;
      for (std::size_t input = 0; input < factors.inputs; ++input)
        added[input] += factor * a[input];
    }
    for (float& one : added) one *= scale;
    SHW_CHECK(round_to_dtype(product.weight.dtype, added));
    for (std::size_t input = 0; input < factors.inputs; ++input) {
      const std::size_t at = product.is_input_first ? input * factors.outputs + output
                                                    : output * factors.inputs + input;
      sums[at] += added[input];
    }
  }
  return {};
}

}  // namespace

Result<std::vector<float>> expert_rows(const ExpertProduct& product, std::int64_t first,
                                       std::int64_t count) {
  const Extents& shape = product.weight.shape;
  SHW_TRY(std::vector<float> sums, read_floats(product.weight, rows_box(shape, first, count)));
  if (product.expert) {
    SHW_CHECK(
        add_product_to(product, {*product.expert, product.first_row + first, count}, sums.data()));
    return sums;
  }
  const auto size = static_cast<std::size_t>(shape[1] * shape[2]);
  for (std::int64_t i = 0; i < count; ++i)
    SHW_CHECK(add_product_to(product, {first + i, 0, shape[1]},
                             sums.data() + static_cast<std::size_t>(i) * size));
  return sums;
}

}  // namespace shw
