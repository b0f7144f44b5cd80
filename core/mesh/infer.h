// Infers the device mesh of the saver from the chunk grids and the rank that wrote each chunk. A
// candidate must predict the box of every chunk from its writer. Each guess has a confidence and
// the evidence against it; code that needs a mesh must not trust a guess silently.
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
  std::vector<Placement> placements;  // one per mesh axis
};

struct MeshGuess {
  Mesh mesh;
  std::string source;          // "given", "spec", "chunk grids and writers"
  double confidence = 0;       // 0 to 1; 1 only if given by the user
  std::int64_t explained = 0;  // number of split tensors whose chunks the mesh predicts
  std::int64_t looked_at = 0;  // number of split tensors examined
  std::vector<TensorPlacements> placements;  // of the explained tensors, one per layout
  std::vector<TensorId> unexplained;         // examined tensors that it does not predict
  std::vector<std::string> against;          // texts about unexplained tensors, at most 8
  bool is_sure() const { return confidence >= 0.99; }
};

// One more than the highest rank that wrote a referenced file.
std::int64_t ranks_that_wrote(const Checkpoint& checkpoint);

// Guesses, best first; empty if no tensor is split. `named`: meshes of the spec (named_meshes).
// `given` (--mesh) always comes first, whatever contradicts it. Examines at most 64 distinct
// layouts.
std::vector<MeshGuess> infer_meshes(const Checkpoint& checkpoint, std::span<const Mesh> named,
                                    const Mesh* given, const Progress* progress = nullptr);

// The placements of `tensor` on `mesh`; nullopt if none match its chunks and writers.
std::optional<std::vector<Placement>> infer_placements(const Checkpoint& checkpoint,
                                                       const Mesh& mesh, TensorId tensor);

// The box of `tensor` that `rank` holds on `mesh`, from all matching placements. Ambiguous if they
// disagree, which happens when replicas hold one box.
struct InferredBox {
  std::optional<Box> box;  // nullopt: no placements match
  bool is_ambiguous = false;
};
InferredBox infer_box(const Checkpoint& checkpoint, const Mesh& mesh, TensorId tensor,
                      std::int64_t rank);

}  // namespace shw
