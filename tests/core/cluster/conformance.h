// Requirements for every transport. Each case is the work of one rank; all ranks run it at once,
// each with a fresh transport. It returns an error that tells which requirement failed.
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
