// Name order with numbers compared as numbers, as people sort lists.
#pragma once

#include <string_view>

namespace shw {

// True if a comes before b: "layers.2" before "layers.10".
bool natural_less(std::string_view a, std::string_view b);

}  // namespace shw
