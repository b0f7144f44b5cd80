// What a check was given, and what it has read: all that facts are found in.
#pragma once

#include <cassert>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/progress.h"
#include "core/base/run_limits.h"
#include "core/base/team.h"
#include "core/base/until_cancelled.h"
#include "core/facts/depth.h"
#include "core/facts/states/optimizer_states.h"
#include "core/facts/storage/integrity.h"
#include "core/formats/items.h"
#include "core/formats/replicas.h"
#include "core/mesh/mesh.h"
#include "core/model/checkpoint.h"
#include "core/spec/spec.h"
#include "core/tiles/coverage.h"

namespace shw {

// One more than the highest rank that wrote a file in use.
std::int64_t ranks_that_wrote(const Checkpoint& checkpoint);

// How the mesh that a person gave fits the tiles, whatever the spec says.
struct MeshFit {
  std::int64_t explained = 0, looked_at = 0;  // tensors that several ranks cut
  std::vector<std::string> against;           // what it does not explain, in words
  std::optional<Mesh> instead;                // another of no more axes that explains all
};

// `headers` is empty at Depth::kMetadata, `data` below kData; otherwise one a chunk.
struct CheckInput {
  const Checkpoint& checkpoint;
  const Spec* spec = nullptr;
  const Mesh* mesh = nullptr;
  ItemHeaders headers;
  ItemDataChecks data;                             // one a chunk
  std::span<const Result<DataCheck>> object_data;  // one an object
  std::span<const TensorTiling> tilings;           // one a tensor
  Depth depth = Depth::kHeaders;
  const Checkpoint* reference = nullptr;  // --against; null without
  // One a tensor, empty without a reference: which tensor of the reference it is.
  std::span<const std::optional<TensorId>> counterparts = {};
  std::int64_t ranks = ranks_that_wrote(checkpoint);
  // At Depth::kData: of copies of tiles in the checkpoint itself.
  std::map<TensorId, ReplicaDoubt> replica_doubts = {};
  OwnEntries own_entries = {};                        // from Depth::kHeaders on
  const Integrity* integrity = nullptr;               // null where no list of files lies beside it
  std::span<const Result<DataCheck>> file_data = {};  // one a file, or none (DataChecks::files)
  // Of which the reference is in doubt by itself: nothing is expected of their shapes.
  std::set<TensorId> doubted_in_reference = {};
  // From Depth::kHeaders on: tensors that are as the reference has them (equal_tensors.h).
  std::set<TensorId> equal_to_reference = {};
  std::optional<MeshFit> mesh_fit = {};  // of `mesh`, where it is not null
  // Where nobody named one: the order of a spec's axes in which tensors lie (rank_orders.h).
  std::shared_ptr<const Mesh> proved_mesh = nullptr;
  // Meshes of the spec that count ranks in another order than those that saved did, or may do so.
  std::vector<Mesh> misordered = {};
  // Of the checkpoint; of what facts are built on, never null (build_facts).
  std::shared_ptr<const std::vector<OptimizerState>> states = nullptr;
  // What may be held of tensors and of decoded items, beside a few pieces a thread.
  std::uint64_t memory = kDefaultMemory;
  // Where it was cancelled nobody looks at what is found.
  Progress* progress = nullptr;
  Team* team = nullptr;  // who share out what rules read; null: alone
};

// All loops of facts and rules over what a large checkpoint has many of are made with these two: a
// check that was cancelled ends in the middle of any of them.
inline auto each_tensor(const CheckInput& input) {
  return until_cancelled(input.checkpoint.tensors(), input.progress);
}
template <class Range>
auto each_of(Range&& range, const CheckInput& input) {
  return until_cancelled(std::forward<Range>(range), input.progress);
}

// Found once: to tell whose each is takes every name of the checkpoint.
inline auto each_state(const CheckInput& input) {
  assert(input.states != nullptr);
  return until_cancelled(*input.states, input.progress);
}

}  // namespace shw
