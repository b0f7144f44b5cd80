// Fingerprints of whole tensors: of every element by its row-major index, whatever the tiles, the
// files and the format.
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

// In the order of `tensors`; of one that has no fingerprint, why: it has no elements, or not each
// of them in one tile, or they cannot be read. The members of a team share the reading out. An
// error of all where somebody stopped it, or where the team broke.
Result<std::vector<Result<Fingerprint>>> fingerprints_of(const Checkpoint& checkpoint,
                                                         const std::vector<TensorId>& tensors,
                                                         std::uint64_t memory, Progress* progress,
                                                         Team* team = nullptr);

}  // namespace shw
