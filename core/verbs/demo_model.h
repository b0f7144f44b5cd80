// What the demo's tensors are and where their tiles lie, worked out from the recipe; writing them
// is demo.cpp's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/formats/dcp/dcp_write.h"
#include "core/mesh/mesh.h"

namespace shw {

struct DemoTile {
  Box recorded;  // what .metadata says; its sizes are those of the item
  std::uint32_t writer = 0;
};

struct DemoTensor {
  std::string fqn;
  Dtype dtype = Dtype::kUnknown;
  Extents recorded;  // the shape in .metadata
  std::vector<DemoTile> tiles;
  std::vector<PathPart> path;
  // What the spec says.
  Extents expected;
  const Mesh* mesh = nullptr;  // of the model below
  std::vector<Placement> placements;
  std::string role;
};

struct DemoModel {
  std::string checkpoint;  // "step_9000"
  Mesh dense_mesh, expert_mesh;
  std::vector<DemoTensor> tensors;
};

// `recipe` is assets/demo.json. The tensors point to the model's own meshes: fill it in place.
Status read_demo_model(std::string_view recipe, DemoModel& model);

std::string demo_spec_json(const DemoModel& model);

}  // namespace shw
