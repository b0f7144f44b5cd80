// What Orbax says of a save beside its arrays, in JSON.
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
  std::vector<std::string> arrays;  // "opt_state.0.mu.kernel", of leaves that are stored as arrays
  std::vector<std::string> texts;   // their values are in _strings.json
  std::vector<std::string> others;  // of types that are not read
  // store_array_data_equal_to_fill_value: every chunk was written, whatever it holds.
  bool has_all_chunks = false;
};
Result<OrbaxTree> parse_orbax_tree(BytesView json);
// The texts of a tree by their names, from _strings.json; empty where that cannot be read.
std::map<std::string, std::string> parse_orbax_texts(BytesView json);

// `_CHECKPOINT_METADATA` says that a save began, and has no time at which it was committed.
bool is_uncommitted(BytesView json);

}  // namespace shw
