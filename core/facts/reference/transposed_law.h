// Is one tensor the other one with every matrix transposed? By bytes where they are equal, all of
// them compared to the bit; else by cosines: cos(X, ref^T) - |cos(X, ref)| > 0.3 for every matrix.
#pragma once

#include <cstdint>
#include <optional>

#include "core/facts/values/tensor_pieces.h"

namespace shw {

enum class Orientation : std::uint8_t {
  kEqual,       // byte for byte the same, shape and all
  kCrossed,     // byte for byte the transpose, or by the law in every matrix
  kRelabelled,  // the very bytes under the other shape: a view, no transpose
  kMixed,       // some matrices are transposed and others are not
  kUnlike,      // nothing can be said
};

struct OrientationFound {
  Orientation orientation = Orientation::kUnlike;
  bool exact = false;         // by bytes
  double margin = 0;          // of the law: the least difference of the two cosines
  std::int64_t compared = 0;  // elements that the law looked at
  bool sampled = false;       // fewer than there are
  std::int64_t matrices = 0, transposed = 0;
};

// The last two dims are a matrix, those before count matrices. `image` has the shape of `truth`, or
// that with its last two dims exchanged. Both are read in pieces, as they lie; what the law looks
// at is held, of a few matrices at a time. Nothing where one of them cannot be read.
std::optional<OrientationFound> find_orientation(const PiecedTensor& image,
                                                 const PiecedTensor& truth);

// What that holds of memory at most, beside a few pieces.
std::uint64_t bytes_to_orient(ExtentsView shape, Dtype dtype);

// Equal but for their last two dims, which are exchanged and differ.
bool swapped_last_two(ExtentsView a, ExtentsView b);
bool is_square(ExtentsView shape);

}  // namespace shw
