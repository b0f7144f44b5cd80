// Byte counts as people type them on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shw {

// Parses "1048576", "256M", "4G", "1T" (powers of 1024); nullopt for anything else.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace shw
