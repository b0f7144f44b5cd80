// Families of names that differ only in numbers: layers, experts, weight0 to weight7.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shw {

// Replaces numbers: "layers.3.mlp.experts.0.w1" becomes "layers.*.mlp.experts.*.w1".
inline std::string without_numbers(std::string_view fqn) {
  std::string out;
  bool in_number = false;
  for (char c : fqn) {
    bool digit = c >= '0' && c <= '9';
    if (!digit) out += c;
    if (digit && !in_number) out += '*';
    in_number = digit;
  }
  return out;
}

// A number in a name that counts members of a family.
struct Member {
  std::string_view before;  // "model.layers."
  std::uint32_t index = 0;
  std::string_view after;  // ".mlp.up_proj.weight"
};

// The numbers after a word for layers or experts, or at the end after "weight" or "bias". Other
// numbers need not be contiguous: modules without parameters leave gaps.
inline std::vector<Member> members_in(std::string_view fqn) {
  std::vector<Member> out;
  for (std::size_t at = 0; at < fqn.size();) {
    if (fqn[at] < '0' || fqn[at] > '9') {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < fqn.size() && fqn[end] >= '0' && fqn[end] <= '9') ++end;
    std::string_view before = fqn.substr(0, at), after = fqn.substr(end);
    bool counts = false;
    for (std::string_view word : {"layers.", "layer.", ".h.", "blocks.", "experts."})
      counts = counts || (before.ends_with(word) && after.starts_with('.'));
    for (std::string_view word : {".weight", ".bias"})
      counts = counts || (before.ends_with(word) && after.empty());
    std::uint32_t index = 0;
    auto [stop, code] = std::from_chars(fqn.data() + at, fqn.data() + end, index);
    if (counts && code == std::errc{} && stop == fqn.data() + end)
      out.push_back({before, index, after});
    at = end;
  }
  return out;
}

}  // namespace shw
