// What the model expects: FQN to shape, dtype, mesh, placements, role. A spec may cover a part of
// the model.
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
  std::optional<Mesh> mesh;  // axes in the order in which the file names them: row-major ranks
  std::vector<Placement> placements;  // one a mesh axis, or empty
  std::string role;   // "expert", "column", "glu", "stacked:64,16,16", ... free text; or empty
  std::string extra;  // keys we do not know, as JSON text: kept, never guessed
};

struct Spec {
  std::string source;  // the file, or the checkpoint, that it came from
  std::map<std::string, SpecEntry, std::less<>> entries;

  const SpecEntry* find(std::string_view fqn) const {
    auto found = entries.find(fqn);
    return found == entries.end() ? nullptr : &found->second;
  }
};

// Meshes that the spec names, each once, the first 8; none without a spec.
std::vector<Mesh> named_meshes(const Spec* spec);

// The JSON of assets/spec.schema.json: {fqn: {"shape", "dtype", "mesh", "placements", "role"}}.
// Errors say the key and the byte.
Result<Spec> load_spec(const std::string& path, const Progress* progress = nullptr);
Result<Spec> parse_spec(std::string_view json, const std::string& source,
                        const Progress* progress = nullptr);

}  // namespace shw
