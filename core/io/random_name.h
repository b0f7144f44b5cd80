// Unpredictable names for temporary files, so that other users cannot create them first.
#pragma once

#include <string>

namespace shw {

// 16 hex digits from the system's random number generator.
std::string random_digits();

}  // namespace shw
