// Holds what was written against what steps have arranged. Goes by boxes, and shares nothing with
// the program that made it.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "core/formats/box_reader.h"
#include "core/repair/mismatch.h"
#include "core/transform/lower.h"
#include "core/transform/part_index.h"
#include "core/transform/part_reader.h"

namespace shw {

tl::unexpected<Error> not_as_arranged(std::string_view fqn, const std::string& what);

// The entry as it is written, and where that lies.
struct WrittenTensor {
  ArrangedTensor tensor;
  TensorId at{};
};
Result<WrittenTensor> written_tensor(const Arrangement& all, const ArrangedEntry& entry,
                                     const WantedForm& form, const Checkpoint& result);

// Dtype, shape and tiles.
Status compare_tiles(const WrittenTensor& written, const Checkpoint& result, std::string_view fqn);
// Entries that are no tensors: one that is not there under its name, or says something else; an
// error where that cannot be told.
Result<std::optional<Error>> arranged_object_that_differs(const Arrangement& all,
                                                          const Checkpoint& result);

// Every element of one tile that was written, beside where it comes from. Fills `mismatch`, if it
// is not null, where one is another.
Status compare_elements(const PartIndex& index, ChunkId chunk, PartReader& wanted,
                        BoxReader& written, Progress* progress,
                        std::optional<Mismatch>* mismatch = nullptr);

}  // namespace shw
