// Tensors that hold other values than the reference, and no cause that explains it.
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
  std::vector<std::string> ambiguous;   // its rows in another order, with equal rows among them
  std::vector<std::string> few_values;  // its tiles at other places, of few different values
  std::vector<std::string> unread;      // can be read here, and were compared with nothing
  std::int64_t equal = 0, not_read = 0;
  std::int64_t alike = 0;  // as far as the first 4 KiB of every tile go
};

// A warning where the other tensors agree with the reference, so that it is of the same step; an
// info where it is of another step, whose numbers are all a little different.
Status report_differing(const Facts& facts, const DifferingTensors& differing,
                        std::vector<Finding>& findings);

}  // namespace shw
