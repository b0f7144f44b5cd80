// Words in tensor names that identify the kind of missing or unexpected tensors.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/explain/message_kinds.h"

namespace shw {

enum class NameList : std::uint8_t { kMissing, kUnexpected, kAny };
using ClueWords = std::array<std::string_view, 20>;
struct NameClue {
  NameList list;
  ClueWords words;  // nearly every name in the list contains one; "^word" begins it
  Interpretation meaning;
};
// The first match is the most specific.
std::span<const NameClue> name_clues();

}  // namespace shw
