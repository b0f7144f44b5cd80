// What check --data finds.
#pragma once

#include <doctest/doctest.h>

#include <vector>

#include "core/rules/check.h"

namespace shw::test {

// Findings that are more than information, with every byte read.
inline std::vector<Finding> findings_above_info(const Checkpoint& checkpoint) {
  CheckOptions options;
  options.depth = Depth::kData;
  auto report = check(checkpoint, options);
  REQUIRE(report.has_value());
  std::vector<Finding> found = std::move(report->findings);
  std::erase_if(found, [](const Finding& one) { return one.severity == Severity::kInfo; });
  return found;
}

inline void check_is_sound(const Checkpoint& checkpoint) {
  for (const Finding& finding : findings_above_info(checkpoint)) FAIL_CHECK(finding.cause);
}

}  // namespace shw::test
