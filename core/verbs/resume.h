// What becomes of work that was killed: gone on with, or taken away. For every verb that makes a
// new folder, and for repairs in place.
#pragma once

#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/repair/run/repair_result.h"

namespace shw {
class Store;
}

namespace shw::verbs {

// What a killed run left, and what it was asked.
struct ResumeOrder {
  Store& store;
  std::string request;  // FolderRun::request, which its journal kept
  std::string partial;  // for FolderRun::partial
  std::string out;      // for FolderRun::out: as it was said, where that is still the place
  std::uint64_t memory = kDefaultMemory;
  DeviceOptions device = {};
  Team* team = nullptr;
};
// How a verb makes its run again from its request: a row of the table in resume.cpp.
struct ResumeRow {
  const char* verb;  // "verb" in the request
  // What takes memory in the order is let go of as soon as it is read.
  Result<RepairResult> (*run)(ResumeOrder order, Progress* progress);
};

// What the rest of a run may take.
struct ResumeLimits {
  std::uint64_t memory = kDefaultMemory;
  DeviceOptions device = {};
  Team* team = nullptr;  // of processes that go on together with what any number of them began
};

struct Resumed {
  RepairResult result;
  bool was_complete = false;  // nothing was left to be done
};
// `folder`: the output that was asked for, the half-made folder itself, or a checkpoint that a
// repair in place was killed in. kUsage where nothing was killed there.
Result<Resumed> resume(Store& store, const std::string& folder, const ResumeLimits& limits,
                       Progress* progress = nullptr);
// Takes away what is half made; says which folders that was.
Result<std::vector<std::string>> roll_back(Store& store, const std::string& folder);
// Drops what undo of a repair in place needs.
Status commit(Store& store, const std::string& checkpoint);

}  // namespace shw::verbs
