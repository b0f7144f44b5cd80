// Looks up the names and shapes of a message in the checkpoint that it is about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/explain/error_text.h"
#include "core/explain/explain.h"
#include "core/facts/depth.h"
#include "core/model/checkpoint.h"
#include "core/model/finding.h"

namespace shw {

enum class NameFound : std::uint8_t { kHere, kUnderOtherName, kNowhere };
std::string_view name(NameFound found);  // "here", "under-other-name", "nowhere"

// One name of the message in the checkpoint.
struct NameLookup {
  std::string name;
  NameFound found = NameFound::kNowhere;
  std::string stored = {};  // its name in the checkpoint; empty if nowhere
  Extents shape = {};
  std::string prefix = {};  // what one of the two names has more
  bool checkpoint_has_prefix = false;
  bool has_siblings = false;  // not here, but other tensors of its module are
  std::string text = {};      // one sentence
};

struct CheckpointLookup {
  std::vector<NameLookup> names = {};  // distinct tensor names, at most kMaxLookups
  std::size_t here = 0, under_other_name = 0, nowhere = 0;
  std::vector<Finding> findings = {};  // of a check of the checkpoint, warnings and errors
  std::optional<Depth> checked = {};   // depth of that check; nullopt if there was none
  bool is_undecided = false;           // that check could not look at everything, or failed
  std::string check_command = {};      // the command that checks the same checkpoint
  std::optional<Error> unopened = {};  // set if the checkpoint cannot be opened
};
inline constexpr std::size_t kMaxLookups = 64;

CheckpointLookup look_up(const ErrorText& parsed, const Checkpoint& checkpoint);

// If all missing names exist in the checkpoint, as they are or behind one prefix, or none does and
// others of their modules do: adds that cause as the first hypothesis with confidence 0.95 and
// lowers the others. Otherwise adds nothing.
void add_lookup_result(const CheckpointLookup& lookup, Explanation& explanation);

}  // namespace shw
