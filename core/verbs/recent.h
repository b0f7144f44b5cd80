// Recently opened checkpoints with their last verdict. The user's file is untrusted.
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
      {};  // "clean", "warnings", "findings" (errors), "undecided"; empty: unknown
  std::string summary = {};  // "3 findings; 1,142 tensors"
  friend bool operator==(const RecentPlace&, const RecentPlace&) = default;
};
using RecentPlaces = std::vector<RecentPlace>;  // the last opened first

inline constexpr std::size_t kMaxRecent = 30;

// "$XDG_STATE_HOME/shardwright/recent.json"; empty if neither folder is set.
std::string recent_file(const char* state_home, const char* home);
// The valid entries; empty if the file cannot be read.
RecentPlaces read_recent(const std::string& file);
RecentPlaces parse_recent(std::string_view text);
std::string to_text(const RecentPlaces& places);
// Puts the place first and removes its older entry.
RecentPlaces with_place(RecentPlaces places, RecentPlace place);
// Writes a temporary file and renames it, so that concurrent readers see the old or the new
// content.
Status write_recent(Store& store, const std::string& file, const RecentPlaces& places);

}  // namespace shw::verbs
