// A learned map as JSON and text.
#pragma once

#include <string>

#include "core/learn/learn.h"

namespace shw {

// What `learn` compared, and where the map went; `out` is empty where it went nowhere.
struct LearnedPaths {
  std::string a, b, out;
};

// {"tensors", "proved", "rows", "unexplained", "unused", "map"}.
std::string learned_to_json(const LearnedMap& learned, const LearnedPaths& paths);
std::string learned_to_text(const LearnedMap& learned, const LearnedPaths& paths);

}  // namespace shw
