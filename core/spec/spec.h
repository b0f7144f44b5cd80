// The expected model: shape, dtype, mesh, placements and role by FQN. May cover a part of the
// model.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/mesh/mesh.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace shw {

struct SpecEntry {
  Extents shape;
  std::optional<Dtype> dtype;
  std::optional<Mesh> mesh;           // axes in file order; ranks are row-major
  std::vector<Placement> placements;  // one per mesh axis, or empty
  std::string role;   // "expert", "column", "glu", "stacked:64,16,16", ... free text; or empty
  std::string extra;  // unknown keys as JSON text, kept unchanged
};

struct Spec {
  std::string source;  // file or checkpoint of the spec
  std::map<std::string, SpecEntry, std::less<>> entries;

  const SpecEntry* find(std::string_view fqn) const {
    auto found = entries.find(fqn);
    return found == entries.end() ? nullptr : &found->second;
  }
};

// The first 8 distinct meshes of the spec; empty without a spec.
std::vector<Mesh> named_meshes(const Spec* spec);

// Reads JSON as in assets/spec.schema.json: {fqn: {"shape", "dtype", "mesh", "placements",
// "role"}}. Errors name key and byte.
Result<Spec> load_spec(const std::string& path, const Progress* progress = nullptr);
Result<Spec> parse_spec(std::string_view json, const std::string& source,
                        const Progress* progress = nullptr);

}  // namespace shw
