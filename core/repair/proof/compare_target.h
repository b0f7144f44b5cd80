// Holds what was written against the target that it was made of. Goes by boxes, and shares nothing
// with the program that made it: a mistake in lowering shows here.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/formats/box_reader.h"
#include "core/repair/proof/mismatch.h"
#include "core/transform/lower.h"
#include "core/transform/part_index.h"
#include "core/transform/part_reader.h"

namespace shw {

tl::unexpected<Error> differs_from_target(std::string_view fqn, const std::string& what);

// The entry as it is written, and where that lies.
struct WrittenTensor {
  TargetTensor tensor;
  TensorId at{};
};
Result<WrittenTensor> written_tensor(const TargetState& all, const TargetEntry& entry,
                                     const WantedForm& form, const Checkpoint& result);

// By chunk of the tensor in the result, in their order, which of `written.tensor.tiles` it is. An
// error where dtype, shape or tiles are others.
Result<std::vector<std::uint32_t>> match_tiles(const WrittenTensor& written,
                                               const Checkpoint& result, std::string_view fqn);
// The same where nobody asks which is which.
Status compare_tiles(const WrittenTensor& written, const Checkpoint& result, std::string_view fqn);
// Entries that are no tensors: one that is not there under its name, or says something else; an
// error where that cannot be told.
Result<std::optional<Error>> differing_target_entry(const TargetState& all,
                                                    const Checkpoint& result);

// Every element of one tile that was written, beside where it comes from. `found` has a mismatch
// where one is another, which is an error too.
Status compare_elements(const PartIndex& index, ChunkId chunk, PartReader& wanted,
                        BoxReader& written, Progress* progress, ComparedTile& found);

// How many elements of `box` were lost before they were out of range: they were both, and count as
// lost alone. Reads them; nothing where no element is lost.
Result<std::int64_t> lost_out_of_range(const PartIndex& index, const Box& box, PartReader& wanted,
                                       Progress* progress);

}  // namespace shw
