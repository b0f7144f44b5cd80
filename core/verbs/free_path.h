// Names for files that the desktop writes; they never replace an existing file.
#pragma once

#include <string>
#include <string_view>

#include "core/io/store.h"

namespace shw::verbs {

struct PlaceRequest {
  std::string checkpoint;  // the opened checkpoint
  // A file that does not exist, or a folder. Empty: next to the checkpoint, or in the working
  // folder if the checkpoint is on another machine.
  std::string path;
  std::string name;    // added to the checkpoint's name: "report" for "step_9000-report.html"
  std::string ending;  // ".html"
};
// A free path. In a folder the first free name: "step_9000-report.html", "step_9000-report-2.html".
// kUsage for a named file that exists.
Result<std::string> free_path(const Store& store, const PlaceRequest& asked);

// A file name from the letters, digits, dots and dashes of an FQN; at most 100 characters.
std::string file_name_of(std::string_view fqn);

}  // namespace shw::verbs
