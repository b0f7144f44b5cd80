// Finds the unfinished work of stopped and killed repairs, and describes it from its journal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/repair/plan/plan_types.h"

namespace shw {
class Store;
}

namespace shw::verbs {

struct StoppedRun {
  std::string folder;           // to resume or discard: the unfinished folder, or the checkpoint
  std::string output = {};      // what it becomes
  std::string checkpoint = {};  // what it reads, resolved; empty: unknown
  bool in_place = false;
  bool is_of_open = false;  // it reads the checkpoint that is open
  std::size_t files = 0;    // finished, with their bytes
  std::uint64_t bytes = 0;
  std::shared_ptr<const Plan> plan = {};    // from its journal; null: unknown
  std::string fill = {};                    // of that plan, as VerbOptions::fill
  std::optional<Error> in_use = {};         // a process may still work on it: it is left alone
  std::optional<Error> not_resumable = {};  // it can only be discarded
};

// A longer plan takes seconds to read; its run is described without it.
inline constexpr std::size_t kMaxStoppedPlanBytes = std::size_t{16} << 20;

struct StoppedRuns {
  std::vector<StoppedRun> runs;      // those that can be resumed first
  std::vector<std::string> outputs;  // that were also searched for, besides those beside it
  std::vector<std::string> seen;     // of unfinished_marks()
};

// Searches next to the checkpoint opened as `path`, inside it, and at `outputs`. Empty for remote
// checkpoints.
StoppedRuns find_stopped_runs(const Store& store, const Checkpoint& checkpoint,
                              const std::string& path, std::vector<std::string> outputs = {},
                              std::size_t most_plan_bytes = kMaxStoppedPlanBytes);
// In a folder of steps.
StoppedRuns find_stopped_runs_in(const Store& store, const std::string& folder);
// The unfinished folders beside `path`, with the states of their owners: changes where a new search
// finds other runs.
std::vector<std::string> unfinished_marks(const Store& store, const std::string& path);

}  // namespace shw::verbs
