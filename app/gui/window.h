// The window: GLFW and OpenGL. Sleeps until an event occurs.
#pragma once

#include "app/gui/picture.h"

namespace shw {

// Runs until the window is closed. kUnsupported without a display; the error says what to do.
Status run_window(const GuiOptions& options);

}  // namespace shw
