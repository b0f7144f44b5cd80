// Is one tensor the other one with every matrix transposed? By bytes where they are equal, else by
// the cosine law P20 (spec/failures.md 1): cos(X, ref^T) - cos(X, ref) > 0.3 for every matrix.
#pragma once

#include <cstdint>

#include "core/formats/items.h"
#include "core/tensor/shape.h"

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
// that with its last two dims exchanged.
OrientationFound find_orientation(const TensorValues& image, const TensorValues& truth);

// Equal but for their last two dims, which are exchanged and differ.
bool swapped_last_two(ExtentsView a, ExtentsView b);
bool is_square(ExtentsView shape);

}  // namespace shw
