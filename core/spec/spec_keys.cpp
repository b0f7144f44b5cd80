#include "core/spec/spec_keys.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/spelling.h"

namespace shw {

std::string nearest_spec_key(const std::string& key) {
  constexpr std::array<std::string_view, 5> kRead = {"shape", "dtype", "mesh", "placements",
                                                     "role"};
  std::string nearest;
  std::size_t least = 3;
  for (std::string_view known : kRead) {
    // Two letters of "role" are another word: a third of the letters may be wrong, and one at
    // least.
    const std::size_t limit = known.size() < 6 ? 1 : 2;
    const std::size_t distance = edit_distance(key, known, limit);
    if (distance > limit || distance >= least) continue;
    least = distance;
    nearest = known;
  }
  return nearest;
}

namespace {

// An entry that has the known key as well means something else by the other one.
bool is_given(const SpecEntry& entry, std::string_view key) {
  return key == "shape" || (key == "dtype" && entry.dtype) || (key == "mesh" && entry.mesh) ||
         (key == "placements" && !entry.placements.empty()) ||
         (key == "role" && !entry.role.empty());
}

}  // namespace

std::vector<MisspeltKey> misspelt_keys(const Spec& spec) {
  std::vector<MisspeltKey> found;
  for (const auto& [fqn, entry] : spec.entries) {
    if (entry.extra.empty()) continue;
    const auto extra = nlohmann::json::parse(entry.extra, nullptr, false);
    if (!extra.is_object()) continue;
    for (const auto& [key, value] : extra.items()) {
      const std::string meant = nearest_spec_key(key);
      if (!meant.empty() && !is_given(entry, meant)) found.push_back({fqn, key, meant});
    }
  }
  return found;
}

}  // namespace shw
