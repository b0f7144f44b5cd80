// Two tensors of one shape hold the same slices in another order: which order is it? Both are read
// in pieces, as they lie: a number or two a slice are held, and no element.
#pragma once

#include <cstdint>
#include <optional>

#include "core/facts/reference/block_order.h"
#include "core/facts/values/tensor_pieces.h"

namespace shw {

enum class BlockAnswer : std::uint8_t {
  kSame,
  kPermuted,
  kAmbiguous,  // the same slices, but equal ones among them: the order cannot be told
  kDiffers,    // other bytes: nothing is said about an order
};
struct BlockComparison {
  BlockAnswer answer = BlockAnswer::kSame;
  BlockOrder order;  // of kPermuted
};

// Of one dtype and shape. Looks along every dimension, the first that answers wins. Hashes
// of slices propose an order; the elements are then compared to the bit. Nothing where one of them
// cannot be read. Of a dimension of more than `most_slices`, as many indices stand together as it
// takes: an order of smaller blocks is not seen.
inline constexpr std::int64_t kMostSlices = std::int64_t{1} << 22;
std::optional<BlockComparison> compare_blocks(const PiecedTensor& image, const PiecedTensor& truth,
                                              std::int64_t most_slices = kMostSlices);

// What that holds of memory at most, beside a few pieces.
std::uint64_t bytes_to_compare_blocks(ExtentsView shape);

}  // namespace shw
