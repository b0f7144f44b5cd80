// One message of a loader, as it was understood.
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
  std::string name;        // of a tensor, a file or a class; empty where the message has none
  Extents saved, current;  // where the message has both
  // Others that the message says, by the name that its pattern gives them: "saved_world" 4.
  std::vector<std::pair<std::string_view, std::int64_t>> numbers = {};
  friend bool operator==(const ErrorMessage&, const ErrorMessage&) = default;
};

}  // namespace shw
