#include "core/spec/spec_keys.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "core/spec/spec_key_names.h"

namespace shw {

namespace {

// True if the entry also has `key`, so that a similar unknown key is not a misspelling of it.
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
