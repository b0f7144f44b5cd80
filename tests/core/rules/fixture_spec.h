// A spec.json of the fixtures, read with the JSON library alone: tests of rules do not hang on the
// reader of specs.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/spec/spec.h"

namespace shw::test {

inline std::shared_ptr<const Spec> fixture_spec(const std::string& path) {
  std::ifstream file(path);
  REQUIRE(file.good());
  auto json = nlohmann::ordered_json::parse(file);  // ordered: axes are row-major as named
  auto spec = std::make_shared<Spec>();
  spec->source = path;
  for (const auto& [fqn, entry] : json.items()) {
    SpecEntry& out = spec->entries[fqn];
    out.shape = entry.at("shape").get<Extents>();
    if (entry.contains("dtype")) out.dtype = dtype_from_torch(entry["dtype"].get<std::string>());
    if (entry.contains("role") && entry["role"].is_string()) out.role = entry["role"];
    if (entry.contains("mesh") && entry["mesh"].is_object()) {
      out.mesh.emplace();
      for (const auto& [name, size] : entry["mesh"].items())
        out.mesh->axes.push_back({name, size.get<std::int64_t>()});
    }
    if (entry.contains("placements")) {
      for (const auto& text : entry["placements"])
        out.placements.push_back(parse_placement(text.get<std::string>()).value());
    }
  }
  return spec;
}

}  // namespace shw::test
