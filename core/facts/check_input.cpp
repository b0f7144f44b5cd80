#include "core/facts/check_input.h"

#include <algorithm>

namespace shw {

std::optional<FloatCounts> float_counts(const CheckInput& input, TensorId tensor) {
  FloatCounts counts;
  for (ChunkId chunk : input.checkpoint.chunks(tensor)) {
    if (index_of(chunk) >= input.data.size()) return std::nullopt;
    const Result<DataCheck>& data = input.data[index_of(chunk)];
    if (!data || !data->floats) return std::nullopt;
    counts += *data->floats;
  }
  return counts;
}

}  // namespace shw
