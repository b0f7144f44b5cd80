// Parses the program's output.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace shw::test {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Returns a discarded value if the text is not JSON.
inline nlohmann::json parsed(const std::string& text) {
  return nlohmann::json::parse(text, nullptr, false);
}

}  // namespace shw::test
