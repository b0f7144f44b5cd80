// Compares two tensors of one shape for equal slices in another order. Reads both in pieces and
// keeps only a few numbers per slice.
#pragma once

#include <cstdint>
#include <optional>

#include "core/facts/reference/block_order.h"
#include "core/facts/values/tensor_pieces.h"

namespace shw {

enum class BlockAnswer : std::uint8_t {
  kSame,
  kPermuted,
  kAmbiguous,  // equal slices repeat, so the order is not unique
  kDiffers,    // different bytes: no order
};
struct BlockComparison {
  BlockAnswer answer = BlockAnswer::kSame;
  BlockOrder order;  // for kPermuted
};

// Requires equal dtype and shape. Tries every dimension; the first with a result wins. Hashes of
// slices propose an order, then the elements are compared bit by bit. nullopt if a tensor cannot be
// read. A dimension with more than `most_slices` slices is compared in blocks of several indices:
// orders of smaller blocks are not found.
inline constexpr std::int64_t kMaxSlices = std::int64_t{1} << 22;
std::optional<BlockComparison> compare_blocks(const PiecedTensor& image, const PiecedTensor& truth,
                                              std::int64_t most_slices = kMaxSlices);

// Maximum memory of the comparison, besides a few pieces.
std::uint64_t bytes_to_compare_blocks(ExtentsView shape);

}  // namespace shw
