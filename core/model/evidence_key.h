// The form of keys in the evidence of findings: "saved_shape". They are keys of JSON, so they never
// contain a name of a checkpoint.
#pragma once

#include <algorithm>
#include <string_view>

namespace shw {

constexpr bool is_evidence_key(std::string_view key) {
  return !key.empty() && key.front() >= 'a' && key.front() <= 'z' &&
         std::all_of(key.begin(), key.end(), [](char letter) {
           return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
                  letter == '_';
         });
}

}  // namespace shw
