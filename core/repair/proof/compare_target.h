// Compares a written result with its target. Works on boxes and shares no code with the program
// that made the result, so that mistakes in lowering show here.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/formats/items/item_cursor.h"
#include "core/repair/proof/mismatch.h"
#include "core/transform/lower.h"
#include "core/transform/part_index.h"
#include "core/transform/part_reader.h"

namespace shw {

tl::unexpected<Error> differs_from_target(std::string_view fqn, const std::string& what);

// A target tensor as written, with its place in the result.
struct WrittenTensor {
  TargetTensor tensor;
  TensorId at{};
};
Result<WrittenTensor> written_tensor(const TargetState& all, const TargetEntry& entry,
                                     const ResultFormat& form, const Checkpoint& result);

// By chunk of the tensor in the result: index of its tile in `written.tensor.tiles`. An error if
// dtype, shape or tiles differ.
Result<std::vector<std::uint32_t>> match_tiles(const WrittenTensor& written,
                                               const Checkpoint& result, std::string_view fqn);
// Like match_tiles(), for callers that need only the check.
Status compare_tiles(const WrittenTensor& written, const Checkpoint& result, std::string_view fqn);
// Compares non-tensor entries: the inner error names one that is missing or has another value, the
// outer error tells why they cannot be compared.
Result<std::optional<Error>> differing_target_entry(const TargetState& all,
                                                    const Checkpoint& result);

// Compares every element of a written tile with its origin. If one differs, `found` has the
// mismatch and the call fails.
Status compare_elements(const PartIndex& index, ChunkId chunk, PartReader& wanted,
                        ItemCursor& written, Progress* progress, ComparedTile& found);

// Number of elements in `box` that are both lost and out of range; they count as lost only. Reads
// them, unless no element of the box is lost.
Result<std::int64_t> lost_out_of_range(const PartIndex& index, const Box& box, PartReader& wanted,
                                       Progress* progress);

}  // namespace shw
