// Tests whether two paths refer to the same file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace shw {

// Device and inode of a path after following links; nullopt if it does not exist.
std::optional<std::pair<std::uint64_t, std::uint64_t>> inode_of(const std::string& path);

// Compares inodes, so that hard and symbolic links are followed. False if a path does not exist.
bool is_same_file(const std::string& a, const std::string& b);

}  // namespace shw
