// A learned map as JSON and text.
#pragma once

#include <string>

#include "core/learn/learn.h"

namespace shw {

// Inputs of `learn`, and the file for the map; `out` is empty if none was written.
struct LearnedPaths {
  std::string a, b, out;
};

// {"tensors", "proved", "rows", "unexplained", "unused", "map"}.
std::string learned_to_json(const LearnedMap& learned, const LearnedPaths& paths);
std::string learned_to_text(const LearnedMap& learned, const LearnedPaths& paths);

}  // namespace shw
