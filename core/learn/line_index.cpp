#include "core/learn/line_index.h"

#include <bit>

namespace shw {

LineIndex::LineIndex(std::size_t lines) {
  const std::size_t places = std::bit_ceil(lines * 2 + 2);
  mask_ = places - 1;
  lines_.assign(places, 0);
  tensors_.assign(places, kFree);
}

// The line is already a hash; its lowest bit only marks constant lines.
std::size_t LineIndex::place_of(std::uint64_t line) const {
  std::size_t at = static_cast<std::size_t>(line >> 1) & mask_;
  while (tensors_[at] != kFree && lines_[at] != line) at = (at + 1) & mask_;
  return at;
}

void LineIndex::add(std::uint64_t line, std::uint32_t tensor) {
  const std::size_t at = place_of(line);
  if (tensors_[at] == kFree) {
    lines_[at] = line;
    tensors_[at] = tensor;
  } else if (tensors_[at] != tensor) {
    tensors_[at] = kSeveral;
  }
}

std::optional<std::uint32_t> LineIndex::tensor_of(std::uint64_t line) const {
  const std::uint32_t tensor = tensors_[place_of(line)];
  return tensor < kSeveral ? std::optional(tensor) : std::nullopt;
}

}  // namespace shw
