#pragma once

#include <string>

#include "core/verbs/written_as.h"

namespace shw {

// State of the panel that writes the checkpoint in another form.
struct WriteState {
  bool open = false;
  int frames = 0;  // since it was opened
  verbs::OutputForm chosen;
  std::string quantised;    // a choice of the panel: "", "numbers", or a scheme of quantised.h
  std::string combined;     // a choice of the panel: "", "merged", "average", "adapter", ...
  std::string inputs;       // paths as typed, separated by commas
  std::string rank = "16";  // of an extracted adapter
  float height = 480;       // in the last frame, in pixels
};

}  // namespace shw
