// Advice for a text without a known message.
#pragma once

#include <string>
#include <string_view>

namespace shw {

// The most useful commands for names, shapes or files in the text. Ends with a full
// stop.
std::string next_step_for(std::string_view text);

}  // namespace shw
