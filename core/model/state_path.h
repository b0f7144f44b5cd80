// The path of an entry in the state dict, when the entry gets another name.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw {

// The path in the state dict under the new name, cut into parts as the old one was; an index stays
// one. Nothing where the path does not spell the old name, or the new one has other parts.
std::optional<std::vector<PathPart>> path_after(std::span<const PathPart> path,
                                                std::string_view old_name,
                                                std::string_view new_name);

}  // namespace shw
