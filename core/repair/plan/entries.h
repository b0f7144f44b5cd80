// Entries that are no tensors: their storage records can point to other items. No byte moves.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/repair/plan/plan_types.h"

namespace shw {

// Adds what the finding asks for, and the operation that says so; all of it or nothing, and then
// why not. `damaged`: other findings speak against the bytes that it needs.
Status plan_entries(const Checkpoint& checkpoint, const Finding& finding, bool damaged, Plan& plan);
// Every entry that is replaced lives on under another name.
bool keeps_every_entry(const Plan& plan);
// By object: whose item it has after the repair; its own where nothing changes.
std::vector<std::size_t> items_after(const Checkpoint& checkpoint, const Plan& plan);
// Both are there with their items, and none is planned twice: plans may come from a file.
Status check_entries(const Checkpoint& checkpoint, const Plan& plan);

}  // namespace shw
