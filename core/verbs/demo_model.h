// Tensors and chunks of the demo, computed from the recipe; demo.cpp writes
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/formats/dcp/dcp_write.h"
#include "core/mesh/mesh.h"

namespace shw {

struct DemoTile {
  Box recorded;  // in .metadata; sizes are those of the item
  std::uint32_t writer = 0;
};

enum class DemoValues : std::uint8_t { kWeights, kNumber, kMean, kSquare };

struct DemoTensor {
  std::string fqn;
  Dtype dtype = Dtype::kUnknown;
  Extents recorded;  // shape in .metadata
  std::vector<DemoTile> tiles;
  std::vector<PathPart> path;
  // Values in the spec.
  Extents expected;
  const Mesh* mesh = nullptr;  // points into DemoModel
  std::vector<Placement> placements;
  std::string role;
  // Kind of values. The moments of a parameter are computed from the gradients of tensor
  // `gradients`.
  DemoValues values = DemoValues::kWeights;
  std::size_t gradients = 0;
  std::int64_t number = 0;  // for kNumber
};

struct DemoModel {
  std::string checkpoint;  // "step_9000"
  Mesh dense_mesh, expert_mesh;
  std::vector<DemoTensor> tensors;
};

// `recipe` is assets/demo.json. Tensors point into the model's meshes, so it must not be moved.
Status read_demo_model(std::string_view recipe, DemoModel& model);

std::string demo_spec_json(const DemoModel& model);

}  // namespace shw
