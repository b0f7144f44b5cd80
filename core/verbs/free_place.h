// Names for files that the desktop writes: none of them replaces a file.
#pragma once

#include <string>
#include <string_view>

#include "core/io/store.h"

namespace shw::verbs {

struct PlaceAsked {
  std::string checkpoint;  // that is open
  std::string path;        // a file that does not exist, or a folder; empty: beside the checkpoint
  std::string name;        // behind the checkpoint's: "report" for "step_9000-report.html"
  std::string ending;      // ".html"
};
// In a folder the first free name: "step_9000-report.html", "step_9000-report-2.html". kUsage for a
// named file that exists.
Result<std::string> free_place(const Store& store, const PlaceAsked& asked);

// Letters, digits, dots and dashes of a tensor's name, for a file's name; at most 100.
std::string file_name_of(std::string_view fqn);

}  // namespace shw::verbs
