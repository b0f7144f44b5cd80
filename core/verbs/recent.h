// What was opened before, with its last verdict: a file of the person's own, that anybody may have
// written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/io/store.h"

namespace shw::verbs {

struct RecentPlace {
  std::string path, spec, against, mesh;
  std::string verdict =
      {};  // "clean", "warnings", "findings" (errors), "undecided"; empty: not known
  std::string summary = {};  // "3 findings; 1,142 tensors"
  friend bool operator==(const RecentPlace&, const RecentPlace&) = default;
};
using RecentPlaces = std::vector<RecentPlace>;  // the last first

inline constexpr std::size_t kMostRecent = 30;

// "$XDG_STATE_HOME/shardwright/recent.json"; empty where neither folder is said.
std::string recent_file(const char* state_home, const char* home);
// Whatever of it makes sense; nothing where it cannot be read.
RecentPlaces read_recent(const std::string& file);
RecentPlaces parse_recent(std::string_view text);
std::string to_text(const RecentPlaces& places);
// The place first, without what was said of it before.
RecentPlaces with_place(RecentPlaces places, RecentPlace place);
// Under another name first, then renamed: somebody who reads meanwhile sees the old or the new.
Status write_recent(Store& store, const std::string& file, const RecentPlaces& places);

}  // namespace shw::verbs
