// Rates of a card that is made up would say nothing.
#include "gpu/device/device.h"

namespace shw::test {

bool measure_kernels(const std::string&) {
  return false;
}

}  // namespace shw::test
