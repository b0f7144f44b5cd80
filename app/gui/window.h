// The window: GLFW and OpenGL. Sleeps until something happens.
#pragma once

#include "app/gui/picture.h"

namespace shw {

// Runs until the window is closed. kUnsupported where no display can be opened, with what to do.
Status run_window(const GuiOptions& options);

}  // namespace shw
