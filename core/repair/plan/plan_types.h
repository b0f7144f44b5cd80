// The ordered operations that turn a checkpoint into the one wanted, with what each one loses; and
// the same lowered to what every new chunk is made of. A plan is data: it can be printed, reviewed,
// saved as JSON and given back.
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

struct Plan {
  std::string checkpoint;              // as opened
  std::vector<Operation> operations;   // empty: nothing to do
  std::vector<PlannedTensor> tensors;  // those that change; all others keep their items
  std::vector<RenamedObject> objects = {};
  std::vector<PlannedEntry> entries = {};
  // Of which other ranks, with indices of their own, saved something else: that stays behind.
  std::vector<std::string> of_other_ranks = {};
  std::vector<Finding> undecided;  // findings above info that nothing here mends, and why
  bool lossless = true;
  bool empty() const { return operations.empty(); }
};

// The name of a planned tensor afterwards.
std::string_view fqn_after(const Checkpoint& checkpoint, const PlannedTensor& planned);

}  // namespace shw
