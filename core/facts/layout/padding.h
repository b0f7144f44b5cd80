// Detects padding rows of a vocabulary dimension, as saves with another tensor-parallel size leave
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"

namespace shw {

// Decided by the spec's role, or by the name.
bool has_vocabulary_rows(std::string_view role, std::string_view fqn);

// True if the rows from `begin` on are all zeros, or (with `or_identical`) at least two equal
// rows. Reads only these rows. nullopt if the tensor is not tiled exactly or the rows cannot be
// read.
std::optional<bool> ends_in_padding(const Checkpoint& checkpoint, TensorId tensor,
                                    std::int64_t begin, bool or_identical,
                                    Progress* progress = nullptr);

}  // namespace shw
