// The state dict path of an entry after a rename.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw {

// Splits the new name into path parts as the old one was split; an index stays an index. nullopt if
// the path does not spell the old name or the new name has other parts.
std::optional<std::vector<PathPart>> path_after(std::span<const PathPart> path,
                                                std::string_view old_name,
                                                std::string_view new_name);

}  // namespace shw
