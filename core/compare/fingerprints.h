// Fingerprints of whole tensors: over all elements by row-major index, independent of tiles, files
// and format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/base/team.h"
#include "core/model/checkpoint.h"
#include "core/tensor/fingerprint.h"

namespace shw {

// In the order of `tensors`; an error for tensors that have no elements, gaps or overlaps, or
// cannot be read. Members of a team share the reading. An error for all only if cancelled, or if
// the team failed.
Result<std::vector<Result<Fingerprint>>> fingerprints_of(const Checkpoint& checkpoint,
                                                         const std::vector<TensorId>& tensors,
                                                         std::uint64_t memory, Progress* progress,
                                                         Team* team = nullptr);

}  // namespace shw
