// Words in a tensor's name that tell what kind of tensor a list lacks or has too many of.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/explain/message_kinds.h"

namespace shw {

enum class NameList : std::uint8_t { kMissing, kUnexpected, kAny };
struct NameClue {
  NameList list;
  std::array<std::string_view, 6> words;  // one of them in nearly every name of the list
  Interpretation meaning;
};
// The first that fits says most.
std::span<const NameClue> name_clues();

}  // namespace shw
