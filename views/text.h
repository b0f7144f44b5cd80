// Formats numbers and names as short text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/words.h"
#include "core/model/checkpoint.h"
#include "core/tensor/shape.h"

namespace shw {

std::string duration_text(double seconds);  // "0.2 s", "45 s", "3 min", "2 h 10 min"
// "float32, stored as GGUF Q4_0".
std::string dtype_text(const Checkpoint& checkpoint, TensorId tensor);
std::string times_text(ExtentsView shape);  // "288×8192×640"; "scalar" for no dims

std::string without_blanks(std::string_view text);  // around a path that was typed
std::string sentence(std::string_view text);        // with a capital letter

// Adapts the text of findings and errors to the desktop: `x` becomes "x", and a half-open range
// [12808, 14385) becomes "bytes 12,808 to 14,384", or "3 to 6" after "rows".
std::string desktop_text(std::string_view text);

// Measures the width of a text in pixels.
using Measure = std::function<float(std::string_view)>;
// The text if it fits, else head and tail around "…". Never splits a UTF-8 sequence.
std::string elide_middle(std::string_view text, float width, const Measure& measure);
// The longest fitting head followed by "…", for sentences.
std::string elide_end(std::string_view text, float width, const Measure& measure);
// Shortens names so that different names stay different: common parts are removed first.
std::vector<std::string> elide_apart(const std::vector<std::string_view>& names, float width,
                                     const Measure& measure);
// "…" and the longest fitting tail that begins after a dot or slash.
std::string elide_path(std::string_view text, float width, const Measure& measure);

}  // namespace shw
