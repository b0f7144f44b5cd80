// Tests whether one tensor equals the other with every matrix transposed: bit by bit if bytes are
// equal; else by cosines: cos(X, ref^T) - |cos(X, ref)| > 0.3 for every matrix.
#pragma once

#include <cstdint>
#include <optional>

#include "core/facts/values/tensor_pieces.h"

namespace shw {

enum class Orientation : std::uint8_t {
  kEqual,        // equal bytes and shape
  kSwappedDims,  // the transpose, by bytes or by cosines of every matrix
  kRelabelled,   // equal bytes under the other shape: a view
  kMixed,        // only some matrices are transposed
  kUnrelated,    // none of these
};

struct OrientationFound {
  Orientation orientation = Orientation::kUnrelated;
  bool exact = false;         // checked by bytes
  double margin = 0;          // cosines: the least difference of the two
  std::int64_t compared = 0;  // elements compared by cosines
  bool sampled = false;       // `compared` is only a part
  std::int64_t matrices = 0, transposed = 0;
};

// The last two dims form a matrix, the dims before count matrices. `image` has the shape of
// `truth`, or that with its last two dims swapped. Both are read in pieces; elements for cosines
// are held for a few matrices at a time. nullopt if one cannot be read.
std::optional<OrientationFound> find_orientation(const PiecedTensor& image,
                                                 const PiecedTensor& truth);

// Maximum memory of the comparison, besides a few pieces.
std::uint64_t orientation_check_bytes(ExtentsView shape, Dtype dtype);

// True if the shapes differ exactly by a swap of their last two dims.
bool differ_by_last_dims_swap(ExtentsView a, ExtentsView b);
bool is_square(ExtentsView shape);

}  // namespace shw
