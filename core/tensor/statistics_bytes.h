// Encodes sums as bytes, for ranks that each count parts of a tensor.
#pragma once

#include "core/base/encoder.h"
#include "core/tensor/statistics.h"

namespace shw {

void add(Encoder& packer, const StatisticsSums& sums);
// Decodes sums for `dtype`, which the caller gives: sums of different dtypes must not be added.
Result<StatisticsSums> decode_sums(Decoder& words, Dtype dtype);

}  // namespace shw
