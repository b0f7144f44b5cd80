// Compares two checkpoints of one model in the layouts of two programs through a map: what differs,
// and which wrong conversion makes it so.
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
    kMistake,  // of a conversion: it gives exactly these elements
    kShape,
    kDtype,    // the values are equal, where they were read
    kValues,   // other numbers, and no known mistake makes them so
    kDamaged,  // it cannot be read whole
  };
  std::string fqn;                    // in the world of MappedComparison::to
  std::vector<std::string> subjects;  // tensors of the checkpoint that is compared
  std::string cause;                  // in words
  Kind kind = Kind::kValues;
};

// A tensor that one of the two has alone.
struct MappedAlone {
  std::string fqn;                // in the world of the compared one
  std::vector<std::string> here;  // its tensors in the checkpoint that has it
};

struct MappedComparison {
  std::string from, to;                   // worlds; tensors are compared as they are in `to`
  std::string map;                        // by name
  std::uint64_t in_both = 0;              // tensors
  std::uint64_t compared = 0, equal = 0;  // of them, element by element
  std::vector<MappedDifference> differences;
  std::vector<MappedAlone> missing;      // that only the reference has
  std::vector<MappedAlone> more;         // that only the compared one has
  std::vector<std::string> unread;       // too large to be compared here
  std::vector<std::string> without_row;  // of either; the map does not know them: not compared
  std::vector<std::string> left_out;     // of either; not weights: optimizer and random states
  bool reads_values = true;
  // Every tensor of either was compared, and none differs.
  bool is_same() const {
    return reads_values && differences.empty() && missing.empty() && more.empty() &&
           unread.empty() && without_row.empty();
  }
};

struct MappedOptions {
  const ModelMap* map = nullptr;  // null: one of this program's, by the names
  bool reads_values = true;       // else names and shapes alone
};

// Whether the two have names of different programs, so that a map is needed.
bool needs_map(const Checkpoint& a, const Checkpoint& b, const ModelFacts& facts);
// Nothing where both have names of one program, or of none that is known.
Result<std::optional<MappedComparison>> compare_mapped(
    const std::shared_ptr<const Checkpoint>& compared,
    const std::shared_ptr<const Checkpoint>& reference, const MappedOptions& options,
    const ModelFacts& facts, Progress* progress);

}  // namespace shw
