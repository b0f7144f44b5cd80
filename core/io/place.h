// Questions about paths that a repair asks before it writes.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"

namespace shw {

// In the name of a directory that a repair is still making, or left when it was killed: never a
// part of a checkpoint, wherever it lies.
inline constexpr const char* kPartialMark = ".shardwright-partial-";

// The path with every link followed; of one that does not exist yet, its parent's with the name
// added.
Result<std::string> resolved_path(const std::string& path);
// Anything under that name, a dangling link too.
bool exists(const std::string& path);
// Free for this user on the file system that holds `path`.
Result<std::uint64_t> free_bytes(const std::string& path);
// `outer` or something below it; both resolved.
bool is_within(const std::string& inner, const std::string& outer);
// "a/b/" and "a/b" are the same place; "/" stays.
std::string without_trailing_slashes(std::string path);
std::string parent_of(const std::string& path);

}  // namespace shw
