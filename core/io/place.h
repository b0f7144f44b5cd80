// Questions about the text of paths, and the names that a repair gives.
#pragma once

#include <string>

namespace shw {

// In the name of a directory that a repair is still making, or left when it was killed: never a
// part of a checkpoint, wherever it lies.
inline constexpr const char* kPartialMark = ".shardwright-partial-";

// `outer` or something below it; both resolved.
bool is_within(const std::string& inner, const std::string& outer);
// "a/b/" and "a/b" are the same place; "/" stays.
std::string without_trailing_slashes(std::string path);
std::string parent_of(const std::string& path);

}  // namespace shw
