// The order in which a person lists names that hold numbers.
#pragma once

#include <string_view>

namespace shw {

// "layers.2" before "layers.10": digits compare as numbers.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace shw
