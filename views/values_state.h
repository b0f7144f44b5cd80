#pragma once

#include <memory>
#include <optional>

#include "core/base/ids.h"

namespace shw {

struct ValuesLook;

struct ValuesState {
  bool open = false;                 // asked for: stands before the first values are there
  const void* beside = nullptr;      // what they were last compared with; never followed
  std::optional<TensorId> followed;  // the selection that was last gone to
};

}  // namespace shw
