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

// The numbers for which is_member(before, after) holds.
template <class IsMember>
std::vector<Member> find_members(std::string_view fqn, IsMember is_member) {
  std::vector<Member> out;
  for (std::size_t at = 0; at < fqn.size();) {
    if (fqn[at] < '0' || fqn[at] > '9') {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < fqn.size() && fqn[end] >= '0' && fqn[end] <= '9') ++end;
    const std::string_view before = fqn.substr(0, at), after = fqn.substr(end);
    std::uint32_t index = 0;
    auto [stop, code] = std::from_chars(fqn.data() + at, fqn.data() + end, index);
    if (is_member(before, after) && code == std::errc{} && stop == fqn.data() + end)
      out.push_back({before, index, after});
    at = end;
  }
  return out;
}

// True if a number behind this counts layers or experts, or tensors called "weight" or "bias".
// Other numbers need not be contiguous: modules without parameters leave gaps.
inline bool is_counted_without_gaps(std::string_view before) {
  for (std::string_view word :
       {"layers.", "layer.", ".h.", "blocks.", "experts.", ".weight", ".bias"}) {
    if (before.ends_with(word)) return true;
  }
  return false;
}

// A number that is a part of its own, or that ends the name behind "weight" or "bias".
inline bool is_counted_number(std::string_view before, std::string_view after) {
  if (after.empty()) return before.ends_with(".weight") || before.ends_with(".bias");
  return after.starts_with('.') && (before.empty() || before.ends_with('.'));
}

// The members of rows that are contiguous.
inline std::vector<Member> members_in(std::string_view fqn) {
  return find_members(fqn, [](std::string_view before, std::string_view after) {
    return is_counted_number(before, after) && is_counted_without_gaps(before);
  });
}

}  // namespace shw
