// Detects a byte order mark, at which Python's json and other strict readers fail but which
// nlohmann_json ignores.
#pragma once

#include <string_view>

#include "core/base/bytes.h"

namespace shw {

inline bool begins_with_byte_order_mark(BytesView bytes) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())
      .starts_with(kMark);
}

}  // namespace shw
