// Tensors whose values differ from the reference without a known cause.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/facts/facts.h"
#include "core/model/finding.h"

namespace shw {

struct DifferingTensors {
  std::vector<std::string> other;
  std::vector<std::string> ambiguous;   // same rows in another order, not unique
  std::vector<std::string> few_values;  // chunks at other places with few distinct values
  std::vector<std::string> unread;      // readable here, but not compared
  std::int64_t equal = 0, not_read = 0;
  std::int64_t alike = 0;  // checked by the first 4 KiB of every chunk
};

// A warning if the other tensors equal the reference (same step); an info if the reference is of
// another step, where all values differ slightly.
Status report_differing(const Facts& facts, const DifferingTensors& differing,
                        std::vector<Finding>& findings);

}  // namespace shw
