// A parsed message of a loader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor/shape.h"

namespace shw {

struct MessageKind;  // message_kinds.h

struct ErrorMessage {
  const MessageKind* kind = nullptr;
  std::string name;        // of a tensor, file or class; empty if the message has none
  Extents saved, current;  // shapes, if the message has both
  // Further numbers, by their name in the pattern: "saved_world" 4.
  std::vector<std::pair<std::string_view, std::int64_t>> numbers = {};
  // The values of "expected X, got Y", if the message has no shapes or numbers of a pattern.
  std::string expected = {}, found = {};
  std::string_view speaker = {};  // the program that printed it, if the text shows it
  friend bool operator==(const ErrorMessage&, const ErrorMessage&) = default;
};

}  // namespace shw
