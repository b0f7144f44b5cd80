// Bitwise comparison of two tensors, after equal fingerprints: fingerprints only propose equality,
// because their weights are public and collisions can be constructed.
#pragma once

#include <cstdint>
#include <optional>

#include "core/facts/values/tensor_pieces.h"

namespace shw {

// nullopt if a tensor cannot be read, false if dtypes differ. Holds at most kHeldOfSide bytes of
// each.
inline constexpr std::uint64_t kHeldOfSide = std::uint64_t{8} << 20;

std::optional<bool> are_equal_elements(const PiecedTensor& image, const PiecedTensor& truth);

// True if `truth`, a matrix of `rows` x `columns` elements, is transposed in `image`.
bool is_transpose(BytesView image, BytesView truth, std::int64_t rows, std::int64_t columns,
                  std::size_t element);
// True if every matrix (last two dims) of `image` is the transpose of that of `truth`.
std::optional<bool> are_transposed_elements(const PiecedTensor& image, const PiecedTensor& truth);

// True if block i of `truth` along `dim` is block order[i] of `image`, with one entry of `order`
// per block.
std::optional<bool> are_permuted_elements(const PiecedTensor& image, const PiecedTensor& truth,
                                          std::size_t dim, std::int64_t block,
                                          const std::vector<std::int64_t>& order);

// Number of differing elements of a box, the first of them, and product sums for floats. Requires
// equal dtype and shape.
struct DifferingElements {
  std::int64_t elements = 0, differing = 0;
  std::int64_t beyond_rounding = 0;  // differ by more than one step of the dtype
  Extents first = {};
  double products = 0, tensor_squares = 0, reference_squares = 0;

  void add(const DifferingElements& other);
  // True if the difference looks like further training: nearly parallel to the reference and of
  // similar norm. False for zeros, doubled values, flipped signs and contents of another tensor.
  bool is_near() const;
  // True if rounding alone explains the difference: nearly all elements differ by at most one step
  // of the dtype. Sums whose terms cancel may differ by more.
  bool is_rounding() const;
  // Cosine of the angle between the two; 0 if one has no length.
  double cosine() const;
};
std::optional<DifferingElements> differing_elements(const PiecedTensor& image,
                                                    const PiecedTensor& truth, const Box& box);

}  // namespace shw
