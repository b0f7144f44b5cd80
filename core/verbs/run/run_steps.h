// The steps of a run: one row per checkpoint of a folder, newest first, each opened and checked by
// its metadata and compared with the step before. Rows are examined one by one, so that the table
// can be shown meanwhile; a new step is added without examining the others again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/rules/check.h"

namespace shw::verbs {

struct RunStep {
  std::string name, path;        // "step_9000", "/runs/7/step_9000"
  bool is_known = false;         // false: not examined yet
  std::int64_t modified_ns = 0;  // of its newest file; 0: unknown
  std::string time = {};         // as text, in local time: "2026-11-27 05:31"
  std::uint64_t stamp = 0;       // changes when a file of the step is added, removed or written
  std::uint64_t bytes = 0;       // total size of its files
  std::size_t files = 0;
  std::optional<Verdict> verdict;  // nullopt: cannot be opened
  std::string headline;            // the verdict, or why it cannot be opened
  bool is_error = false;           // a finding is an error, or it cannot be opened
  bool has_hint = false;           // no finding, but an info that parts may be missing
  std::size_t tensors = 0;
  std::size_t files_lost = 0;      // missing or cut off
  std::int64_t elements_lost = 0;  // number of unreadable elements
  std::string differs;       // difference to the previous step: "2 tensors added"; empty: none
  bool is_compared = false;  // false: `differs` is unknown
};

struct RunSteps {
  std::string asked;           // path as typed by the user
  std::string path;            // resolved path of the folder
  std::vector<RunStep> steps;  // newest first, by natural order of names
  std::size_t not_read = 0;    // number of further folders beyond the limit
  std::optional<Error> error;  // why listing failed; the steps are those that were listed before
  bool is_complete() const;
  // True if both have the same steps with the same files, or cannot be listed.
  bool is_like(const RunSteps& other) const;
  // The last examined step, to be compared with the step before it.
  std::shared_ptr<const Checkpoint> last;
  std::string last_name;
};

// True if the folder is not a checkpoint but holds some.
bool is_run_folder(const std::string& path);

// Lists names only. Keeps rows of `before` (may be null) whose files have not changed.
RunSteps list_run(const std::string& path, const RunSteps* before = nullptr);
// Examines the next step. Fails only with kCancelled.
Result<RunSteps> inspect_next_step(RunSteps run, Progress* progress);

}  // namespace shw::verbs
