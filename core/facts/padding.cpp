#include "core/facts/padding.h"

#include <algorithm>
#include <cstring>

#include "core/base/bytes.h"

namespace shw {

bool is_padding(const TensorValues& values, std::int64_t begin, bool or_identical) {
  auto rows = static_cast<std::size_t>(values.shape[0]);
  std::size_t row = values.bytes.size() / rows;
  BytesView tail = BytesView(values.bytes).subspan(static_cast<std::size_t>(begin) * row);
  if (std::all_of(tail.begin(), tail.end(), [](std::byte b) { return b == std::byte{0}; }))
    return true;
  if (!or_identical || tail.size() < 2 * row || row == 0) return false;
  return std::memcmp(tail.data(), tail.data() + row, tail.size() - row) == 0;
}

}  // namespace shw
