// Which mesh saved this? Inferred from the chunk grids and the writer of each chunk
// (spec/failures.md 11): a candidate must predict the box of every chunk from its writer. It says
// how sure it is and what speaks against it; nothing that needs a mesh may trust it silently.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/mesh/mesh.h"
#include "core/model/checkpoint.h"

namespace shw {

struct TensorPlacements {
  TensorId tensor{};
  std::vector<Placement> placements;  // one a mesh axis
};

struct MeshGuess {
  Mesh mesh;
  std::string source;          // "given", "spec", "chunk grids and writers"
  double confidence = 0;       // 0 to 1; 1 only where a person said it
  std::int64_t explained = 0;  // tensors cut by several ranks whose chunks it predicts
  std::int64_t looked_at = 0;  // of so many
  std::vector<TensorPlacements> placements;  // of those explained, one a layout
  std::vector<TensorId> unexplained;         // all that were looked at and are not
  std::vector<std::string> against;          // in words, at most 8: what it does not explain
  bool is_sure() const { return confidence >= 0.99; }
};

// Best first; empty where nothing was cut. `named`: those that the spec names (named_meshes).
// `given` (--mesh) always stands first, whatever speaks against it. Looks at no more than 64
// distinct layouts.
std::vector<MeshGuess> infer_meshes(const Checkpoint& checkpoint, std::span<const Mesh> named,
                                    const Mesh* given, const Progress* progress = nullptr);

// How `tensor` was cut on `mesh`; nothing where no placements give its writers their boxes.
std::optional<std::vector<Placement>> infer_placements(const Checkpoint& checkpoint,
                                                       const Mesh& mesh, TensorId tensor);

// The part of `tensor` that `rank` holds on `mesh`, by all placements that give its writers their
// boxes; ambiguous where two of them differ: replicas of one box leave that open.
struct InferredBox {
  std::optional<Box> box;  // nothing: no placements fit
  bool is_ambiguous = false;
};
InferredBox infer_box(const Checkpoint& checkpoint, const Mesh& mesh, TensorId tensor,
                      std::int64_t rank);

}  // namespace shw
