// Two tensors compared element by element, to the bit. Equal fingerprints only propose: their
// weights are public, and two tensors of other values with one fingerprint can be made by hand.
#pragma once

#include <cstdint>
#include <optional>

#include "core/facts/values/tensor_pieces.h"

namespace shw {

// Each is nothing where one of the two cannot be read, and false where their dtypes differ. At most
// kHeldOfSide bytes of each are held.
inline constexpr std::uint64_t kHeldOfSide = std::uint64_t{8} << 20;

std::optional<bool> are_equal_elements(const PiecedTensor& image, const PiecedTensor& truth);

// Whether every matrix of the last two dimensions of `image` is the transpose of that of `truth`.
std::optional<bool> are_transposed_elements(const PiecedTensor& image, const PiecedTensor& truth);

// Whether block i of `truth` along `dim` is block order[i] of `image`. `order` has an entry per
// block.
std::optional<bool> are_permuted_elements(const PiecedTensor& image, const PiecedTensor& truth,
                                          std::size_t dim, std::int64_t block,
                                          const std::vector<std::int64_t>& order);

// How many elements of a box differ in their bits, the first of them, and sums of their values
// where they are floats. Of one dtype and shape.
struct DifferingElements {
  std::int64_t elements = 0, differing = 0;
  Extents first = {};
  double products = 0, image_squares = 0, truth_squares = 0;

  void add(const DifferingElements& other);
  // As training leaves numbers: nearly along the reference, and nearly as large. Zeros, doubled
  // numbers, turned signs and what belongs to another tensor are not.
  bool is_near() const;
};
std::optional<DifferingElements> differing_elements(const PiecedTensor& image,
                                                    const PiecedTensor& truth, const Box& box);

}  // namespace shw
