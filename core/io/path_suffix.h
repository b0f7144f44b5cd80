// The suffix of a path that asks for a checkpoint computed from the folder before it, and
// possibly from other folders:
//
//   BEFORE/@WORD[:NUMBERS][=PATH[,PATH...]]
//
// core/verbs/computed_path.h lists the words and their meanings.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace shw {

struct ComputedSuffix {
  std::string before;                    // may end in such a suffix itself
  std::string word;                      // "average"
  std::string numbers = {};              // "0.5,0.5"
  std::vector<std::string> others = {};  // may have suffixes of their own, without "=PATH"
};

// Returns "/@quantised" at the end of the path, whatever is before it; else the last suffix that
// has
// "=PATH"; if there is none, the suffix at the end of the path; nullopt if the path has no suffix.
std::optional<ComputedSuffix> parse_computed_suffix(const std::string& path);
std::string to_path(const ComputedSuffix& end);

// The path without such suffixes.
std::string path_without_suffixes(std::string path);
// The last part of the path and of those in its suffixes: "base/@merged=adapter".
std::string short_path(const std::string& path);

}  // namespace shw
