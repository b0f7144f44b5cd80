// The filter line over the list of tensors: words that all must occur in the FQN (case is ignored),
// and terms:
//   finding:*  finding:RULE   dtype:bfloat16   rank:17   ndim:3   shape:[288,*,640]
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"
#include "core/rules/check.h"

namespace shw {

// Indices of the tensors that pass, in recorded order; nothing if cancelled. `report` may be null.
Result<std::vector<std::uint32_t>> filter_tensors(const Checkpoint& checkpoint,
                                                  const CheckReport* report, std::string_view text,
                                                  Progress* progress);

}  // namespace shw
