// The picture of a frame as SVG: shapes and texts as such, so that they can be enlarged, searched
// and edited; what is a texture on the screen is in it as an image.
#pragma once

#include <imgui.h>
#include <span>
#include <string>

#include "app/gui/offscreen.h"
#include "core/base/result.h"
#include "views/frame.h"

namespace shw {

// `texts`: those of the frame, as Marks records them. `screen`: its pixels, for textures.
// kUnsupported if there are more shapes than a viewer would open.
Result<std::string> svg_of(const ImDrawData& frame, std::span<const TextMark> texts,
                           const Image& screen);

}  // namespace shw
