// Parts of weight names: "model.layers.0.q_proj.weight" belongs to the module
// "model.layers.0.q_proj", whose last part is "q_proj".
#pragma once

#include <string_view>

namespace shw {

// The name without its last part; the name itself if it has one part.
inline std::string_view module_of(std::string_view fqn) {
  return fqn.substr(0, fqn.rfind('.'));
}

inline std::string_view last_part(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

inline bool is_embedding_module(std::string_view module) {
  const std::string_view last = last_part(module);
  return last.find("embed") != std::string_view::npos || last == "wte" || last == "wpe";
}

}  // namespace shw
