// Whether two paths lead to one file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace shw {

// Device and inode of what the path leads to, through links; nothing where nothing is there.
std::optional<std::pair<std::uint64_t, std::uint64_t>> inode_of(const std::string& path);

// By the inode: links of both kinds are followed. False where one of them is not there.
bool is_same_file(const std::string& a, const std::string& b);

}  // namespace shw
