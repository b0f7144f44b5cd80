// Rows that say nothing: what a save with another tensor-parallel size puts at the end of the
// vocabulary (spec/failures.md 8, N7).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"

namespace shw {

// By what the spec says of it, or by its name.
bool is_of_vocabulary(std::string_view role, std::string_view fqn);

// Rows from `begin` on are all zeros, or (`or_identical`) one row over and over, at least two of
// them. Nothing where the tensor is not tiled exactly or those rows cannot be read; no other row
// is.
std::optional<bool> ends_in_padding(const Checkpoint& checkpoint, TensorId tensor,
                                    std::int64_t begin, bool or_identical,
                                    Progress* progress = nullptr);

}  // namespace shw
