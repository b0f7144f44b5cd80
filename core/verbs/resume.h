// Resumes or removes unfinished work of a killed process, for every verb that creates a folder, and
// for repairs in place.
#pragma once

#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/repair/run/repair_result.h"

namespace shw {
class Store;
}

namespace shw::verbs {

// The leftovers of a killed run, and its request.
struct ResumeRequest {
  Store& store;
  std::string request;  // FolderRun::request, from the journal
  std::string partial;  // for FolderRun::partial
  std::string out;      // for FolderRun::out: as originally typed, if still valid
  std::uint64_t memory = kDefaultMemory;
  DeviceOptions device = {};
  Team* team = nullptr;
};
// How a verb repeats its run from a request: a row of the table in resume.cpp.
struct ResumeRow {
  const char* verb;  // "verb" in the request
  // Frees large members of the order as soon as they are used.
  Result<RepairResult> (*run)(ResumeRequest order, Progress* progress);
};

// Limits of the resumed run.
struct ResumeLimits {
  std::uint64_t memory = kDefaultMemory;
  DeviceOptions device = {};
  Team* team = nullptr;  // processes that resume together; their number may differ from before
};

struct ResumeResult {
  RepairResult result;
  bool was_already_finished = false;  // nothing was left to do
};
// `folder`: the requested output, the unfinished folder itself, or a checkpoint whose repair in
// place was killed. kUsage if there is no unfinished work.
Result<ResumeResult> resume(Store& store, const std::string& folder, const ResumeLimits& limits,
                            Progress* progress = nullptr);
// kUsage if a process may still work on this unfinished folder.
Status check_not_in_progress(const Store& store, const std::string& partial);
// Removes unfinished work; returns the folders.
Result<std::vector<std::string>> roll_back(Store& store, const std::string& folder);
// Deletes the data for undoing a repair in place.
Status commit(Store& store, const std::string& checkpoint);

}  // namespace shw::verbs
