// State dict paths, as text and after a rename.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw {

std::string path_part_text(const PathPart& part);  // an index as its digits
// Joins the parts: "state.0.exp_avg".
std::string dotted_path(std::span<const PathPart> path);

// Splits the new name into path parts as the old one was split; an index stays an index. nullopt if
// the path does not spell the old name or the new name has other parts.
std::optional<std::vector<PathPart>> renamed_path(std::span<const PathPart> path,
                                                  std::string_view old_name,
                                                  std::string_view new_name);

}  // namespace shw
