// Output files named by the user. A regular file is replaced in one step, links are followed, and
// devices, pipes and terminals are written to directly.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace shw {

struct OutputTarget {
  std::string path;         // after following links; may not exist yet
  bool is_special = false;  // a device, pipe or terminal: written to, not replaced
};
// kUsage for a folder and for a cycle of links.
Result<OutputTarget> output_target(const std::string& path);

// Writes all of `text`. An existing file keeps its permissions; if writing fails it keeps its bytes
// too.
Status write_output_file(const std::string& path, std::string_view text);

}  // namespace shw
