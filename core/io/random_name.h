// Names that another user of the machine cannot foresee, for what is made before it gets its own.
#pragma once

#include <string>

namespace shw {

// 16 hex digits from the system's random numbers.
std::string random_digits();

}  // namespace shw
