#include "core/facts/values/equal_elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/facts/values/value_reader.h"
#include "core/tiles/blocks.h"

namespace shw {
namespace {

std::int64_t elements_per_read(const PiecedTensor& tensor) {
  const std::uint64_t width = std::max<std::uint64_t>(size_of(tensor.dtype), 1);
  return static_cast<std::int64_t>(kHeldOfSide / width);
}

// The elements of a box, row-major.
std::optional<Bytes> read_box_row_major(const PiecedTensor& tensor, const Box& wanted) {
  const std::size_t element = size_of(tensor.dtype);
  const Extents strides = row_major_strides(wanted.sizes);
  const std::int64_t origin = index_at(wanted.offsets, strides);
  Bytes out(static_cast<std::size_t>(volume(wanted.sizes).value_or(0)) * element);
  const bool is_read = tensor.pass(wanted, [&](const Box& box, BytesView elements) {
    each_row(box, elements, element, strides,
             [&](const Extents&, std::int64_t index, BytesView row) {
               std::memcpy(out.data() + static_cast<std::size_t>(index - origin) * element,
                           row.data(), row.size());
             });
  });
  return is_read ? std::optional(std::move(out)) : std::nullopt;
}

// True if image[here] equals truth[there]; boxes of equal size.
std::optional<bool> are_equal_boxes(const PiecedTensor& image, const Box& here,
                                    const PiecedTensor& truth, const Box& there) {
  auto one = read_box_row_major(image, here);
  auto two = one ? read_box_row_major(truth, there) : std::nullopt;
  if (!two) return std::nullopt;
  return std::equal(one->begin(), one->end(), two->begin(), two->end());
}

}  // namespace

bool is_transpose(BytesView image, BytesView truth, std::int64_t rows, std::int64_t columns,
                  std::size_t element) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      if (std::memcmp(truth.data() + static_cast<std::size_t>(i * columns + j) * element,
                      image.data() + static_cast<std::size_t>(j * rows + i) * element,
                      element) != 0)
        return false;
    }
  }
  return true;
}

namespace {

// Compares a box that spans `dim` in both tensors, with blocks in another order.
bool has_blocks_in_order(const Bytes& image, const Bytes& truth, ExtentsView sizes, std::size_t dim,
                         std::size_t bytes_of_block, const std::vector<std::int64_t>& order) {
  std::int64_t outer = 1;
  for (std::size_t d = 0; d < dim; ++d) outer *= sizes[d];
  const std::size_t bytes_of_outer = bytes_of_block * order.size();
  for (std::size_t o = 0; o < static_cast<std::size_t>(outer); ++o) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (std::memcmp(truth.data() + o * bytes_of_outer + i * bytes_of_block,
                      image.data() + o * bytes_of_outer +
                          static_cast<std::size_t>(order[i]) * bytes_of_block,
                      bytes_of_block) != 0)
        return false;
    }
  }
  return true;
}

// Compares block by block, for dimensions too large for memory.
std::optional<bool> are_permuted_blocks(const PiecedTensor& image, const PiecedTensor& truth,
                                        std::size_t dim, std::int64_t block,
                                        const std::vector<std::int64_t>& order) {
  Extents sizes = truth.shape;
  sizes[dim] = block;
  for (std::size_t i = 0; i < order.size(); ++i) {
    Blocks parts{sizes, block_sizes(sizes, elements_per_read(truth), {})};
    while (parts.next()) {
      Box here = parts.block, there = parts.block;
      here.offsets[dim] += order[i] * block;
      there.offsets[dim] += static_cast<std::int64_t>(i) * block;
      auto same = are_equal_boxes(image, here, truth, there);
      if (!same || !*same) return same;
    }
  }
  return true;
}

}  // namespace

std::optional<bool> are_equal_elements(const PiecedTensor& image, const PiecedTensor& truth) {
  if (image.dtype != truth.dtype || !same(image.shape, truth.shape)) return false;
  Blocks parts{truth.shape, block_sizes(truth.shape, elements_per_read(truth), {})};
  while (parts.next()) {
    auto same = are_equal_boxes(image, parts.block, truth, parts.block);
    if (!same || !*same) return same;
  }
  return true;
}

std::optional<bool> are_transposed_elements(const PiecedTensor& image, const PiecedTensor& truth) {
  constexpr std::int64_t kSide = 512;  // a tile of 512 x 512 elements of 16 bytes is 4 MiB
  const std::size_t n = truth.shape.size();
  if (image.dtype != truth.dtype || n < 2 || image.shape.size() != n) return false;
  Extents step(n, 1);
  for (std::size_t d = n - 2; d < n; ++d) step[d] = std::min(kSide, truth.shape[d]);
  Blocks parts{truth.shape, step};
  while (parts.next()) {
    Box here = parts.block;
    std::swap(here.offsets[n - 1], here.offsets[n - 2]);
    std::swap(here.sizes[n - 1], here.sizes[n - 2]);
    auto one = read_box_row_major(image, here);
    auto two = one ? read_box_row_major(truth, parts.block) : std::nullopt;
    if (!two) return std::nullopt;
    if (!is_transpose(*one, *two, parts.block.sizes[n - 2], parts.block.sizes[n - 1],
                      size_of(truth.dtype)))
      return false;
  }
  return true;
}

std::optional<bool> are_permuted_elements(const PiecedTensor& image, const PiecedTensor& truth,
                                          std::size_t dim, std::int64_t block,
                                          const std::vector<std::int64_t>& order) {
  if (image.dtype != truth.dtype || !same(image.shape, truth.shape)) return false;
  std::int64_t inner = 1;
  for (std::size_t d = dim + 1; d < truth.shape.size(); ++d) inner *= truth.shape[d];
  if (inner * truth.shape[dim] > elements_per_read(truth))
    return are_permuted_blocks(image, truth, dim, block, order);
  Extents step = truth.shape;
  std::int64_t taken = inner * truth.shape[dim];
  for (std::size_t d = dim; d-- > 0;) {
    step[d] = std::clamp<std::int64_t>(elements_per_read(truth) / std::max<std::int64_t>(taken, 1),
                                       1, truth.shape[d]);
    taken *= step[d];
  }
  const auto bytes_of_block = static_cast<std::size_t>(inner * block) * size_of(truth.dtype);
  Blocks parts{truth.shape, step};
  while (parts.next()) {
    auto one = read_box_row_major(image, parts.block);
    auto two = one ? read_box_row_major(truth, parts.block) : std::nullopt;
    if (!two) return std::nullopt;
    if (!has_blocks_in_order(*one, *two, parts.block.sizes, dim, bytes_of_block, order))
      return false;
  }
  return true;
}

void DifferingElements::add(const DifferingElements& other) {
  if (differing == 0) first = other.first;
  elements += other.elements;
  beyond_rounding += other.beyond_rounding;
  differing += other.differing;
  products += other.products;
  tensor_squares += other.tensor_squares;
  reference_squares += other.reference_squares;
}

bool DifferingElements::is_near() const {
  // One AdamW step changes a weight by the learning rate, thousandths of its size.
  constexpr double kMinCosine = 0.9, kMaxScale = 1.25;
  const double scale = std::sqrt(tensor_squares / reference_squares);
  return std::isfinite(scale) && scale < kMaxScale && scale > 1 / kMaxScale &&
         products > kMinCosine * std::sqrt(tensor_squares * reference_squares);
}

bool DifferingElements::is_rounding() const {
  constexpr std::int64_t kMaxBeyond = 100;  // one in so many elements
  return differing != 0 && beyond_rounding * kMaxBeyond <= elements && is_near();
}

double DifferingElements::cosine() const {
  const double lengths = std::sqrt(tensor_squares * reference_squares);
  return lengths > 0 ? products / lengths : 0;
}

namespace {

// True if the two are at most one step of the dtype apart. Sums of float32 differ by their order.
bool is_within_one_ulp(Dtype dtype, double one, double two) {
  const double most = dtype == Dtype::kBfloat16  ? 0x1p-7
                      : dtype == Dtype::kFloat16 ? 0x1p-10
                      : dtype == Dtype::kFloat32 ? 0x1p-18
                                                 : 0;
  return std::abs(one - two) <= most * std::max(std::abs(one), std::abs(two));
}

}  // namespace

std::optional<DifferingElements> differing_elements(const PiecedTensor& image,
                                                    const PiecedTensor& truth, const Box& box) {
  if (image.dtype != truth.dtype || !same(image.shape, truth.shape)) return std::nullopt;
  DifferingElements out{.elements = volume(box.sizes).value_or(0)};
  const std::size_t element = size_of(truth.dtype);
  const bool is_float = has_values(truth.dtype);
  Blocks parts{box.sizes, block_sizes(box.sizes, elements_per_read(truth), {})};
  while (parts.next()) {
    Box part = parts.block;
    for (std::size_t d = 0; d < part.offsets.size(); ++d) part.offsets[d] += box.offsets[d];
    auto one = read_box_row_major(image, part);
    auto two = one ? read_box_row_major(truth, part) : std::nullopt;
    if (!two) return std::nullopt;
    const Extents strides = row_major_strides(part.sizes);
    for (std::size_t i = 0; i < one->size() / element; ++i) {
      if (is_float) {
        const double here = value_at(truth.dtype, *one, i), there = value_at(truth.dtype, *two, i);
        out.products += here * there;
        out.tensor_squares += here * here;
        out.reference_squares += there * there;
      }
      if (std::memcmp(one->data() + i * element, two->data() + i * element, element) == 0) continue;
      if (!is_float || !is_within_one_ulp(truth.dtype, value_at(truth.dtype, *one, i),
                                          value_at(truth.dtype, *two, i)))
        ++out.beyond_rounding;
      if (out.differing++ != 0) continue;
      auto left = static_cast<std::int64_t>(i);
      for (std::size_t d = 0; d < strides.size(); ++d) {
        out.first.push_back(part.offsets[d] + left / strides[d]);
        left %= strides[d];
      }
    }
  }
  return out;
}

}  // namespace shw
