// Python's json and other strict readers stop at a byte order mark, which nlohmann_json passes
// over.
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
