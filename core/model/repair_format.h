// The format of a repair's result, where that of the checkpoint is read only.
#pragma once

#include <string_view>

#include "core/model/checkpoint.h"

namespace shw {

// The last step of a repair if its result is not written in this format: "convert:dcp". Empty if
// it is. safetensors holds tensors alone.
inline std::string_view conversion_after_repair(const Checkpoint& checkpoint) {
  const Format& format = checkpoint.format();
  if (format.writer != nullptr) return "";
  const bool fits_safetensors =
      format.traits.has_one_piece_per_tensor && checkpoint.objects().empty();
  return fits_safetensors ? "convert:safetensors" : "convert:dcp";
}

}  // namespace shw
