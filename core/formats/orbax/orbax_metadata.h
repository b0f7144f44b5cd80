// Orbax's JSON files about a save, other than arrays.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/io/source.h"

namespace shw {

inline constexpr std::string_view kOrbaxMetadata = "_METADATA",
                                  kOrbaxCheckpointMetadata = "_CHECKPOINT_METADATA";

// `_METADATA`: the leaves of the tree.
struct OrbaxTree {
  std::vector<std::string> arrays;  // leaves that are stored as arrays: "opt_state.0.mu.kernel"
  std::vector<std::string> texts;   // leaves whose values are in _strings.json
  std::vector<std::string> others;  // leaves of types that are not supported
  // store_array_data_equal_to_fill_value: chunks of only fill values were written too.
  bool has_all_chunks = false;
};
Result<OrbaxTree> parse_orbax_tree(BytesView json);
// The values of _strings.json by leaf name; empty if it cannot be parsed.
std::map<std::string, std::string> parse_orbax_texts(BytesView json);

// Names of the items that `_CHECKPOINT_METADATA` says were saved, one folder per item; empty for a
// save of a single item.
std::vector<std::string> saved_items(BytesView json);
// True if `_CHECKPOINT_METADATA` records the begin of a save but no commit time.
bool is_uncommitted(BytesView json);

}  // namespace shw
