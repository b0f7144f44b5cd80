// What can be opened, as a person is told of it.
#pragma once

#include <string_view>
#include <vector>

namespace shw::verbs {

struct KnownFormat {
  std::string_view title;  // "PyTorch DCP"
  std::string_view sign;   // what a folder of it is told by: ".metadata"
};
// One a title, in the order in which folders are asked.
std::vector<KnownFormat> known_formats();

}  // namespace shw::verbs
