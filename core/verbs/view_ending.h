// File name extension of saved views (view_file.h).
#pragma once

#include <string_view>

namespace shw::verbs {

inline constexpr std::string_view kViewEnding = ".shardwright";

}  // namespace shw::verbs
