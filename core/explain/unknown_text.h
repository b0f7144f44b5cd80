// What to do with a text in which no known message was found.
#pragma once

#include <string>
#include <string_view>

namespace shw {

// The commands that say most about the checkpoint, chosen by what stands in the text: a name like
// a tensor's, shapes, a file. Ends with a full stop.
std::string next_step_for(std::string_view text);

}  // namespace shw
