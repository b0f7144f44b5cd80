// A place that a person saved on the desktop, as an HTML report draws it.
#pragma once

#include <optional>
#include <string>

#include "core/model/checkpoint.h"

namespace shw {

struct PageView {
  TensorId tensor{};
  std::optional<ChunkId> tile = {};
  std::string finding = {};  // rule and first subject; may be empty
};

}  // namespace shw
