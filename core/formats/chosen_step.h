// Records which of several saved steps was opened.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/finding.h"

namespace shw {

struct ChosenStep {
  std::string folder;                    // relative to the opened folder
  std::string why;                       // "which latest names"
  std::vector<std::string> aside = {};   // the steps that were not opened, in natural order
  std::optional<std::string> gone = {};  // missing folder named by a tracker file
  // Later steps of the run that hold a trainer's files and no checkpoint.
  std::vector<std::string> without_model = {};
  // A note on the tracker file: "latest is empty: ..."; a warning if it is there without a step.
  std::string tracker_note = {};
  bool is_tracker_empty = false;
  std::vector<std::string> empty = {};  // later folders of the run without a file
  // If `folder` lacks the file that the trainer writes last: that file, and the newest step with
  // it.
  std::string last_file = {}, newest_finished = {};
};
// The finding that names the step that was opened.
Finding chosen_step_finding(const ChosenStep& chosen);
// The finding about a step whose save did not finish, though its weights can be opened.
std::optional<Finding> unfinished_step_finding(const ChosenStep& chosen);

// Prefixes the folder to an error's file, if the reader gave only the part below.
void prefix_folder_to_error(Error& error, const std::string& folder);
// The error of the newest step, with the names of the other steps. `run` is the path of the folder
// of steps; empty if the steps are files.
tl::unexpected<Error> newest_step_error(Error error, const ChosenStep& chosen,
                                        const std::string& run);

}  // namespace shw
