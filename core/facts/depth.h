// The depth of a check.
#pragma once

#include <cstdint>
#include <string_view>

namespace shw {

enum class Depth : std::uint8_t { kMetadata, kHeaders, kData };
std::string_view name(Depth depth);  // "metadata", "headers", "data"

}  // namespace shw
