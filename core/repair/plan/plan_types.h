// A plan stores each repair twice: as operations that say what changes and what is lost, and as the
// source of every new chunk. Then come the user's steps and the output format.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/model/finding.h"
#include "core/repair/plan/planned_chunks.h"
#include "core/transform/steps.h"

namespace shw {

enum class OperationKind : std::uint8_t {
  kRelabel,
  kRetile,
  kPermuteBlocks,
  kTranspose,
  kRename,
  kMask,
  kFill,
  kRewriteMetadata
};
std::string_view name(OperationKind kind);  // "relabel", "retile", "permute-blocks", ...

struct Operation {
  OperationKind kind = OperationKind::kRelabel;
  std::string rule;                   // of the finding that asks for it
  std::vector<std::string> subjects;  // FQNs; of kRewriteMetadata also files and other entries
  std::string text;  // "relabel 64 tiles: [288, 8192, 640] becomes [288, 4096, 1280]"
  std::int64_t tiles = 0;
  std::uint64_t bytes_moved = 0;
  std::int64_t elements_lost = 0;
  bool lossless = true;
  // Number of tensors that change: rewriting the metadata changes none of those that it names.
  std::size_t tensors() const {
    return kind == OperationKind::kRewriteMetadata ? 0 : subjects.size();
  }
};

enum class Fill : std::uint8_t {
  kZero,
  kCast,       // the same box of `fill_from`, cast to this dtype
  kReference,  // the same box of a tensor of another checkpoint
};
std::string_view name(Fill fill);  // "zero", "cast", "from"

struct PlannedTensor {
  TensorId tensor{};
  Extents shape;
  PlannedChunks chunks;
  std::vector<Box> lost;  // every element whose saved bytes are lost, whatever fills its place
  std::int64_t lost_elements = 0;
  Fill fill = Fill::kZero;
  std::string fill_from;  // FQN: in this checkpoint for kCast, in `fill_source` for kReference
  std::shared_ptr<const Checkpoint> fill_source = nullptr;  // for kReference
  std::string fqn = {};  // the new name; empty: the name does not change
};

// A non-tensor entry that gets a new name; its bytes stay.
struct RenamedObject {
  std::size_t object = 0;  // index in objects()
  std::string fqn;
};

// A non-tensor entry that gets another entry's value. Both are indices in objects().
struct PlannedEntry {
  std::size_t object = 0;
  std::size_t item_of = 0;  // whose item its record points to
};

// Another checkpoint that elements are read from.
struct PlanInput {
  std::string checkpoint, fingerprint;  // fingerprint empty: any state of it is accepted
  std::string original_path = {};       // the relative path in the plan's file
};

struct Plan {
  std::string checkpoint;        // as opened
  std::string fingerprint = {};  // of the checkpoint; empty: a plan for any checkpoint
  std::vector<PlanInput> inputs = {};
  std::vector<Operation> operations;   // empty: nothing to do
  std::vector<PlannedTensor> tensors;  // tensors that change; all others keep their items
  std::vector<RenamedObject> objects = {};
  std::vector<PlannedEntry> entries = {};
  // Entries whose values differ on other ranks, which have their own index: these are not copied.
  std::vector<std::string> of_other_ranks = {};
  // Findings above info that the plan does not repair, with the reason.
  std::vector<Finding> undecided;
  bool lossless = true;  // true if the repairs lose nothing
  // Applied in order after the operations.
  std::vector<Step> steps = {};
  std::string format = {};        // output format; empty: that of the source
  std::uint64_t shard_bytes = 0;  // Outputs::shard_bytes
  bool weights_only = false;      // leaves out what a trainer saves next to the weights

  bool repairs() const { return !operations.empty(); }
  bool transforms() const { return !steps.empty() || !format.empty(); }
  bool empty() const { return !repairs() && !transforms(); }
};

// FQN of a planned tensor in the result.
std::string_view fqn_after(const Checkpoint& checkpoint, const PlannedTensor& planned);

}  // namespace shw
