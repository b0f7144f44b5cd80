#include "core/formats/dcp/dcp_rows.h"

#include <algorithm>
#include <functional>

namespace shw {

std::uint32_t NameTable::intern(std::string_view text) {
  if (texts_.size() * 2 >= slots_.size()) grow();
  std::size_t mask = slots_.size() - 1;
  std::size_t slot = std::hash<std::string_view>{}(text)&mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    if (texts_[slots_[slot] - 1] == text) return slots_[slot] - 1;
  }
  texts_.push_back(text);
  slots_[slot] = size();
  return size() - 1;
}

void NameTable::grow() {
  slots_.assign(std::max<std::size_t>(1024, slots_.size() * 2), 0);
  std::size_t mask = slots_.size() - 1;
  for (std::uint32_t name = 0; name < size(); ++name) {
    std::size_t slot = std::hash<std::string_view>{}(texts_[name]) & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = name + 1;
  }
}

}  // namespace shw
