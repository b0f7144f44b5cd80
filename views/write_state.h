#pragma once

#include <string>

#include "core/verbs/written_as.h"

namespace shw {

// State of the panel that writes the checkpoint in another form.
struct WriteState {
  bool open = false, wanted = false;  // wanted: focus the first field in the next frame
  verbs::WriteAs chosen;
  bool dequantise = false;
  std::string adapter, others;  // paths as typed; `others` are separated by commas
  float height = 480;           // in the last frame, in pixels
};

}  // namespace shw
