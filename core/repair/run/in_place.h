// Repairs in place and their undo. Only `.metadata` is replaced; the old one is kept as
// `.metadata.shardwright-undo`.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/repair/plan/plan_types.h"
#include "core/repair/run/repair_result.h"

namespace shw {

class Store;

// Checks that the plan can be applied in place; the error says why it cannot.
Status check_in_place(const Checkpoint& checkpoint, const Plan& plan);
// Restores the old `.metadata` byte for byte after --in-place. kUsage if there is nothing to undo.
Status undo_repair(Store& store, const std::string& checkpoint_path);
Status undo_repair(const std::string& checkpoint_path);  // on this machine

// State of a repair in place.
enum class InPlace : std::uint8_t {
  kNothing,   // there is no such repair
  kBegun,     // killed before it changed anything
  kReplaced,  // killed after .metadata was replaced
  kDone
};
Result<InPlace> in_place_state(const Directory& checkpoint);
// Finishes a killed repair. kUsage if that is impossible, or if a process is still running it.
Result<RepairResult> resume_in_place(Store& store, const std::string& checkpoint_path,
                                     Progress* progress);
// Rolls a killed repair back, so that the checkpoint is as before.
Status roll_back_in_place(Store& store, const std::string& checkpoint_path);
// Deletes the files that undo needs. kUsage if there are none, or a repair was killed.
Status commit_repair(Store& store, const std::string& checkpoint_path);
// Result of a finished repair: its folder, its certificate, and whether it lost nothing.
Result<RepairResult> read_finished_repair(const Directory& checkpoint);

}  // namespace shw
