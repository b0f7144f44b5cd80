// A view that the user saved in the desktop, as drawn by the HTML report.
#pragma once

#include <optional>
#include <string>

#include "core/model/checkpoint.h"

namespace shw {

struct PageView {
  TensorId tensor{};
  std::optional<ChunkId> tile = {};
  std::string finding = {};  // rule and first subject; may be empty
  std::string note = {};     // of the user who pinned it
};

}  // namespace shw
