// Plans that a person keeps, and the place that a repair would write to.
#pragma once

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

// "~" and "~/x" as a shell reads them; anything else as it is.
std::string expanded_path(std::string path);

// Writes the plan as `repair --plan` reads it, whole or not at all. Replaces a plan that lies
// there, and nothing else; never writes into what was opened.
Status save_plan(Store& store, const Opened& opened, const VerbOptions& options, const Plan& plan,
                 const std::string& path);
// As somebody wrote it into a field.
Result<Plan> read_plan_text(const Opened& opened, std::string_view json);

// What is known of a place before anything is written there.
struct RepairTarget {
  std::string typed_path;                   // as the person typed it; empty: the default
  std::string path = {};                    // where it would go, whole; empty: nowhere
  std::optional<Error> refused = {};        // why not there
  std::vector<std::string> half_made = {};  // folders that killed or running repairs left for it
};
RepairTarget look_at_target(const Store& store, const Opened& opened,
                            const std::string& typed_path);

}  // namespace shw::verbs
