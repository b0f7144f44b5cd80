// Saved plans, and the output path of a repair.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/repair/run/repair_result.h"
#include "core/verbs/verbs.h"

namespace shw {
class Store;
}

namespace shw::verbs {

// Expands "~" and "~/x" like a shell; other paths are unchanged.
std::string expanded_path(std::string path);
// The path from the root, for a command that is typed elsewhere: "step_9000" becomes
// "/runs/7/step_9000". Links stay, so that `latest` is followed each time. Remote paths stay too.
std::string absolute_path(std::string path);

// Saves the plan atomically for `repair --plan`. Replaces only existing plans; refuses to write
// into the opened checkpoint.
Status save_plan(Store& store, const Opened& opened, const VerbOptions& options, const Plan& plan,
                 const std::string& path);
// Parses JSON that a user typed.
Result<Plan> read_plan_text(const Opened& opened, std::string_view json);

// Properties of an output path before anything is written.
struct RepairTarget {
  std::string typed_path;                          // as typed by the user; empty: the default
  std::string path = {};                           // the absolute path; empty: none
  std::optional<Error> refused = {};               // why it is refused
  std::optional<std::uint64_t> free = {};          // bytes on its disk
  std::optional<std::uint64_t> needs = {};         // bytes that the plan writes
  bool is_needs_upper_bound = false;               // `needs` is an upper bound
  std::shared_ptr<const Plan> plan_of_needs = {};  // the plan that `needs` was counted for
  std::string earlier = {};  // a result that has the default name already; empty: none
};
// `suffix`: of the default name.
RepairTarget inspect_target(const Store& store, const Opened& opened, const std::string& typed_path,
                            const std::string& suffix);

}  // namespace shw::verbs
