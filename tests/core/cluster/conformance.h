// What every transport must do, whatever carries its bytes. Each case is what one worker does: all
// run it at once, each with a transport that nobody has used before. It returns an error that says
// in what the transport fell short.
#pragma once

#include <span>

#include "core/cluster/transport.h"

namespace shw::test {

struct ConformanceCase {
  const char* title;
  Status (*run)(Transport& transport);
};
std::span<const ConformanceCase> conformance_cases();

}  // namespace shw::test
