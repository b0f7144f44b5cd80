// The supported formats for display.
#pragma once

#include <string_view>
#include <vector>

#include "core/model/format.h"

namespace shw::verbs {

struct KnownFormat {
  std::string_view title;             // "PyTorch DCP"
  std::string_view sign;              // identifying content: ".metadata"
  std::string_view name = {};         // "dcp", as in JSON
  Rewrite repaired = Rewrite::kNone;  // what a repair writes
  bool has_checksums = false;  // its items have checksums, so that --data finds changed bytes
};
// One per title, in the order of recognition.
std::vector<KnownFormat> known_formats();
// Titles of formats that are recognised but cannot be read.
std::vector<std::string_view> refused_formats();

}  // namespace shw::verbs
