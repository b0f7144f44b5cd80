// Numbers of bytes as people type them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shw {

// "1048576", "256M", "4G", "1T", in powers of 1024; nothing where it is no such number.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace shw
