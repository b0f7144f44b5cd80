// The supported formats for display.
#pragma once

#include <string_view>
#include <vector>

namespace shw::verbs {

struct KnownFormat {
  std::string_view title;  // "PyTorch DCP"
  std::string_view sign;   // identifying content: ".metadata"
};
// One per title, in the order of recognition.
std::vector<KnownFormat> known_formats();

}  // namespace shw::verbs
