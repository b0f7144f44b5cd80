// A frame as SVG: shapes and texts stay vectors, so that they can be enlarged, searched and edited.
// Textures become embedded images.
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
