// Non-tensor entries: their storage records can point to other items. No byte moves.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/repair/plan/plan_types.h"

namespace shw {

// Plans the repair that the finding asks for, with its operation. On an error the plan is
// unchanged. `damaged`: other findings cast doubt on the bytes that it needs.
Status plan_entries(const Checkpoint& checkpoint, const Finding& finding, bool damaged, Plan& plan);
// True if every entry that is replaced still exists under another name.
bool keeps_every_entry(const Plan& plan);
// For each non-tensor entry: the index of the entry whose item it has after the repair; its own
// index if the plan does not change it.
std::vector<std::size_t> items_after(const Checkpoint& checkpoint, const Plan& plan);
// Checks that both objects exist and have items, and that none is planned twice: plans may come
// from an edited file.
Status check_entries(const Checkpoint& checkpoint, const Plan& plan);

}  // namespace shw
