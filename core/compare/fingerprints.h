// Fingerprints of whole tensors: of every element by its row-major index, whatever the tiles.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/tensor/fingerprint.h"

namespace shw {

// In the order of `tensors`; nothing of one that has no elements, is not whole, or cannot be read.
// An error where somebody stopped it.
Result<std::vector<std::optional<Fingerprint>>> fingerprints_of(
    const Checkpoint& checkpoint, const std::vector<TensorId>& tensors, std::uint64_t memory,
    Progress* progress);

}  // namespace shw
