// The end of a path that asks for what is computed of the folder before it, of other folders too:
//
//   BEFORE/@WORD[:NUMBERS][=PATH[,PATH...]]
//
// Which words there are, and what they mean, is in core/verbs/asked_path.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace shw {

struct AskedEnd {
  std::string before;                    // may have such an end itself
  std::string word;                      // "average"
  std::string numbers = {};              // "0.5,0.5"
  std::vector<std::string> others = {};  // may have one where it takes no others
};

// The last end of the path that takes others, and else the one that it ends in; nothing where the
// path has none.
std::optional<AskedEnd> asked_end(const std::string& path);
std::string to_path(const AskedEnd& end);

}  // namespace shw
