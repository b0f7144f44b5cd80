// A file that a person names as output. A file gets its new bytes in one step, a link is followed,
// and a device, a pipe or a terminal is written through and never replaced.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace shw {

struct OutputTarget {
  std::string path;         // links followed; its last name may not be there yet
  bool is_special = false;  // to be opened and written, not replaced
};
// kUsage for a folder, and for links that lead in a circle.
Result<OutputTarget> output_target(const std::string& path);

// Writes all of `text`. A file that was there keeps its rights; where writing fails it keeps its
// bytes too.
Status write_output_file(const std::string& path, std::string_view text);

}  // namespace shw
