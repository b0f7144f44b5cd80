// The inputs of a check, and what was read for it: the basis of all facts.
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

#include "core/base/cancellable_range.h"
#include "core/base/progress.h"
#include "core/base/run_limits.h"
#include "core/base/team.h"
#include "core/facts/depth.h"
#include "core/facts/states/optimizer_states.h"
#include "core/facts/storage/integrity.h"
#include "core/formats/items/items.h"
#include "core/formats/replicas.h"
#include "core/mesh/infer.h"
#include "core/mesh/mesh.h"
#include "core/model/checkpoint.h"
#include "core/spec/spec.h"
#include "core/tensor/float_counts.h"
#include "core/tiles/coverage.h"

namespace shw {

// How well the user's mesh (--mesh) explains the chunks, independent of the spec.
struct MeshFit {
  std::int64_t explained = 0, looked_at = 0;  // tensors split over several ranks
  std::vector<std::string> against;           // what the mesh does not explain, as texts
  std::optional<Mesh> instead;                // a mesh with no more axes that explains everything
};

// `headers` is empty at Depth::kMetadata, `data` below kData; otherwise one entry per chunk.
struct CheckInput {
  const Checkpoint& checkpoint;
  const Spec* spec = nullptr;
  const Mesh* mesh = nullptr;
  ItemHeaders headers;
  ItemDataChecks data;                             // one per chunk
  std::span<const Result<DataCheck>> object_data;  // one per non-tensor entry
  std::span<const TensorTiling> tilings;           // one per tensor
  Depth depth = Depth::kHeaders;
  const Checkpoint* reference = nullptr;  // --against; may be null
  // One per tensor, empty without a reference: the matching tensor of the reference.
  std::span<const std::optional<TensorId>> counterparts = {};
  std::int64_t ranks = ranks_that_wrote(checkpoint);
  // At Depth::kData: copies of chunks in this checkpoint that differ.
  std::map<TensorId, ReplicaMismatch> replica_mismatches = {};
  RankSpecificEntries own_entries = {};               // from Depth::kHeaders on
  const Integrity* integrity = nullptr;               // null if there is no list of file hashes
  std::span<const Result<DataCheck>> file_data = {};  // one per file, or none (DataChecks::files)
  // Tensors that are damaged in the reference: their shapes there are not expected here.
  std::set<TensorId> untrusted_in_reference = {};
  // From Depth::kHeaders on: tensors equal to the reference's (equal_tensors.h).
  std::set<TensorId> equal_to_reference = {};
  std::optional<MeshFit> mesh_fit = {};  // for `mesh`, if not null
  // Without a user's mesh: the order of a spec's axes that the tensors prove (rank_orders.h).
  std::shared_ptr<const Mesh> proved_mesh = nullptr;
  // Meshes of the spec whose rank order differs, or may differ, from the saver's.
  std::vector<Mesh> meshes_in_other_rank_order = {};
  // Optimizer states; never null for facts (build_facts).
  std::shared_ptr<const std::vector<OptimizerState>> states = nullptr;
  // Memory limit for tensors and decoded items, besides a few pieces per thread.
  std::uint64_t memory = kDefaultMemory;
  // If the check is cancelled, results are incomplete and must not be used.
  Progress* progress = nullptr;
  Team* team = nullptr;  // processes that share the reads of rules; null: a single process
};

// Counts over all elements of a tensor; nullopt if a chunk was not read or has no counts.
std::optional<FloatCounts> float_counts(const CheckInput& input, TensorId tensor);

// Facts and rules use these ranges for loops over large collections, so that a cancelled check ends
// within any loop.
inline auto each_tensor(const CheckInput& input) {
  return cancellable_range(input.checkpoint.tensors(), input.progress);
}
template <class Range>
auto each_of(Range&& range, const CheckInput& input) {
  return cancellable_range(std::forward<Range>(range), input.progress);
}

// Computed once, because the assignment of states to parameters reads all names.
inline auto each_state(const CheckInput& input) {
  assert(input.states != nullptr);
  return cancellable_range(*input.states, input.progress);
}

}  // namespace shw
