// The format of a repair's result, where that of the checkpoint is read only.
#pragma once

#include <string_view>

#include "core/model/format.h"

namespace shw {

// The last step of a repair if its result is not written in this format: "convert:dcp". Empty if
// it is.
constexpr std::string_view conversion_after_repair(const Format& format) {
  if (format.writer != nullptr) return "";
  return format.traits.one_piece ? "convert:safetensors" : "convert:dcp";
}

}  // namespace shw
