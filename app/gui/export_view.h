// Saves the screen as a PNG or SVG file next to the checkpoint; never replaces a file.
#pragma once

#include <functional>

#include "app/gui/offscreen.h"
#include "app/gui/workbench.h"

namespace shw {

class ViewExport {
 public:
  // Call before a frame is drawn: the frame records its texts if it is to be exported.
  void begin(Workbench& bench);
  // Call after ImGui::Render and the drawing of the frame. `pixels` reads the screen. True if a
  // file was written or refused, which the next frame says.
  bool finish(Workbench& bench, const std::function<Image()>& pixels);

 private:
  bool is_recording_ = false;
};

}  // namespace shw
