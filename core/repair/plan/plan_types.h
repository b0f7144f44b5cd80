// The one kind of plan there is. What findings ask for stands there twice: as operations that say
// what each one changes and loses, and as what every new chunk is made of. Then come the steps that
// a person asks for, and the format to write. A plan is data: it can be printed, reviewed, edited,
// saved as JSON and given back (plan_json.cpp has the grammar).
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
  std::string rule;                   // the finding that asks for it
  std::vector<std::string> subjects;  // FQNs; of kRewriteMetadata also files and other entries
  std::string text;  // "relabel 64 tiles: [288, 8192, 640] becomes [288, 4096, 1280]"
  std::int64_t tiles = 0;
  std::uint64_t bytes_moved = 0;
  std::int64_t elements_lost = 0;
  bool lossless = true;
  // That it changes: of those that the metadata alone names nothing becomes another.
  std::size_t tensors() const {
    return kind == OperationKind::kRewriteMetadata ? 0 : subjects.size();
  }
};

enum class Fill : std::uint8_t {
  kZero,
  kCast,       // the same box of `fill_from`, cast to this dtype
  kReference,  // the same, of a tensor of another checkpoint
};
std::string_view name(Fill fill);  // "zero", "cast", "from"

struct PlannedTensor {
  TensorId tensor{};
  Extents shape;
  PlannedChunks chunks;
  std::vector<Box>
      lost;  // every element whose own saved bytes are gone, whatever it was filled with
  std::int64_t lost_elements = 0;
  Fill fill = Fill::kZero;
  std::string fill_from;  // FQN, for kCast here and for kReference in `fill_source`
  std::shared_ptr<const Checkpoint> fill_source = nullptr;  // of kReference
  std::string fqn = {};  // the name that it gets; empty: it keeps its own
};

// An entry that is no tensor and gets another name; its bytes stay.
struct RenamedObject {
  std::size_t object = 0;  // index in objects()
  std::string fqn;
};

// An entry that is no tensor says from now on what another one says. By index in objects().
struct PlannedEntry {
  std::size_t object = 0;
  std::size_t item_of = 0;  // whose item its record points to
};

// Another checkpoint that elements are taken from.
struct PlanInput {
  std::string checkpoint, fingerprint;  // fingerprint empty: in whatever state
  std::string original_path = {};       // the relative path that the plan's file has for it
};

struct Plan {
  std::string checkpoint;        // as opened
  std::string fingerprint = {};  // of it; empty: a plan for any checkpoint
  std::vector<PlanInput> inputs = {};
  std::vector<Operation> operations;   // empty: nothing to do
  std::vector<PlannedTensor> tensors;  // those that change; all others keep their items
  std::vector<RenamedObject> objects = {};
  std::vector<PlannedEntry> entries = {};
  // Of which other ranks, with indices of their own, saved something else: that stays behind.
  std::vector<std::string> of_other_ranks = {};
  std::vector<Finding> undecided;  // findings above info that nothing here mends, and why
  bool lossless = true;            // of what findings ask for
  // Taken one after the other of what the operations leave.
  std::vector<Step> steps = {};
  std::string format = {};        // that is written; empty: the one that was read
  std::uint64_t shard_bytes = 0;  // Outputs::shard_bytes
  bool weights_only = false;      // what a trainer keeps beside the weights is not copied along

  bool repairs() const { return !operations.empty(); }
  bool transforms() const { return !steps.empty() || !format.empty(); }
  bool empty() const { return !repairs() && !transforms(); }
};

// The name of a planned tensor afterwards.
std::string_view fqn_after(const Checkpoint& checkpoint, const PlannedTensor& planned);

}  // namespace shw
