// Compares two checkpoints of one model in the layouts of two programs through a map: which tensors
// differ, and which conversion mistake explains it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/maps/choose_map.h"
#include "core/model/checkpoint.h"

namespace shw {

struct MappedDifference {
  enum class Kind : std::uint8_t {
    kMistake,  // a known conversion mistake gives exactly these elements
    kOrder,    // another order gives them, without its reason (Mistake::Kind::kOrder)
    kShape,
    kDtype,    // the values are equal, if they were read
    kValues,   // other numbers that no known mistake explains
    kDamaged,  // cannot be read completely
  };
  // True if a conversion explains all elements.
  bool is_mistake() const { return kind == Kind::kMistake || kind == Kind::kOrder; }

  std::string fqn;                    // in the world of MappedComparison::to
  std::vector<std::string> subjects;  // FQNs in the compared checkpoint
  std::string cause;                  // as text
  Kind kind = Kind::kValues;
};

// A tensor that only one of the two has.
struct UnmatchedMappedTensor {
  std::string fqn;                // in the world of the compared checkpoint
  std::vector<std::string> here;  // FQNs in the checkpoint that has it
};

struct MappedComparison {
  std::string from, to;       // worlds; tensors are compared in the layout of `to`
  std::string map;            // name of the map
  std::string program = {};   // of both, if the reference was given the layout of another one
  std::uint64_t in_both = 0;  // number of tensors
  std::uint64_t compared = 0, equal = 0;  // of those in both, compared by element
  std::vector<MappedDifference> differences;
  std::vector<UnmatchedMappedTensor> missing;  // only in the reference
  std::vector<UnmatchedMappedTensor> more;     // only in the compared checkpoint
  std::vector<std::string> unread;             // too large to compare
  std::vector<std::string> incomplete;   // of both sides: other parts of their stacks are missing
  std::vector<std::string> without_row;  // of both sides: unknown to the map, not compared
  std::vector<std::string> left_out;     // of both sides: optimizer and random states
  bool reads_values = true;
  // True if all tensors of both sides were compared and none differs.
  bool is_same() const {
    return reads_values && differences.empty() && missing.empty() && more.empty() &&
           unread.empty() && incomplete.empty() && without_row.empty();
  }
};

struct MappedOptions {
  const ModelMap* map = nullptr;  // null: a built-in one, chosen by names
  bool reads_values = true;       // false: compare only names and shapes
};

// True if the names belong to two programs, so that a map is needed.
bool needs_map(const Checkpoint& a, const Checkpoint& b, const ModelFacts& facts);
// nullopt if the names belong to one program or to no known one.
Result<std::optional<MappedComparison>> compare_mapped(
    const std::shared_ptr<const Checkpoint>& compared,
    const std::shared_ptr<const Checkpoint>& reference, const MappedOptions& options,
    const ModelFacts& facts, Progress* progress);

}  // namespace shw
