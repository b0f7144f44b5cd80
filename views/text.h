// Numbers and names as short text for people.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/words.h"
#include "core/tensor/shape.h"

namespace shw {

std::string duration_text(double seconds);  // "0.2 s", "45 s", "3 min", "2 h 10 min"
std::string times_text(ExtentsView shape);  // "288×8192×640"; "scalar" for no dims

std::string sentence(std::string_view text);  // with a capital

// Gives the width in pixels of a text.
using Measure = std::function<float(std::string_view)>;
// The text itself where it fits, else its head and tail around "…". Never cuts a UTF-8 sequence.
std::string elide_middle(std::string_view text, float width, const Measure& measure);
// The longest head that fits, with "…" behind it: for sentences.
std::string elide_end(std::string_view text, float width, const Measure& measure);
// Each as short as it must be, and no two different names the same: parts that they share go first.
std::vector<std::string> elide_apart(const std::vector<std::string_view>& names, float width,
                                     const Measure& measure);
// "…" and the longest tail that begins after a dot or a slash and fits.
std::string elide_path(std::string_view text, float width, const Measure& measure);

}  // namespace shw
