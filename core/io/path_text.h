// Operations on path text, and names of output directories.
#pragma once

#include <string>

namespace shw {

// Part of the name of an unfinished output directory, also of one left by a killed run. Such a
// directory is never read as part of a checkpoint.
inline constexpr const char* kPartialMark = ".shardwright-partial-";

// True if `inner` equals `outer` or is below it; both must be resolved paths.
bool is_within(const std::string& inner, const std::string& outer);
// Removes trailing slashes: "a/b/" becomes "a/b"; "/" is unchanged.
std::string without_trailing_slashes(std::string path);
std::string parent_of(const std::string& path);

}  // namespace shw
