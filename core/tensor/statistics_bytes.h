// Sums as bytes, for processes that add up parts of one tensor.
#pragma once

#include "core/base/packed.h"
#include "core/tensor/statistics.h"

namespace shw {

void add(Packer& packer, const StatisticsSums& sums);
// Of elements of `dtype`, whatever the bytes say: sums of another one do not add up.
Result<StatisticsSums> take_sums(Unpacker& words, Dtype dtype);

}  // namespace shw
