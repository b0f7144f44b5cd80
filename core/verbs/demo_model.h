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

enum class DemoValues : std::uint8_t { kWeights, kNumber, kMean, kSquare };

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
  // What stands in it. The two moments of a parameter are made from the same gradients: those of
  // tensor `gradients`.
  DemoValues values = DemoValues::kWeights;
  std::size_t gradients = 0;
  std::int64_t number = 0;  // of kNumber
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
