// Whether a repair can be done in place, and how it is taken back. `.metadata` alone is replaced,
// and the old one kept as `.metadata.shardwright-undo`.
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

// Whether the plan can be carried out with in_place: the error says why it cannot.
Status check_in_place(const Checkpoint& checkpoint, const Plan& plan);
// Takes back what --in-place did: the old `.metadata` returns, byte for byte. kUsage where there is
// nothing to take back.
Status undo_repair(Store& store, const std::string& checkpoint_path);
Status undo_repair(const std::string& checkpoint_path);  // on this machine

// Where a repair in place stands.
enum class InPlace : std::uint8_t {
  kNothing,   // there is none
  kBegun,     // was killed before it changed anything
  kReplaced,  // was killed when .metadata was the new one already
  kDone
};
Result<InPlace> in_place_state(const Directory& checkpoint);
// Finishes what was killed. kUsage where that cannot be done, or somebody is still at it.
Result<RepairResult> resume_in_place(Store& store, const std::string& checkpoint_path,
                                     Progress* progress);
// Or takes it back: the checkpoint is as it was before.
Status roll_back_in_place(Store& store, const std::string& checkpoint_path);
// Drops what undo needs. kUsage where there is nothing to drop, or a repair was killed.
Status commit_repair(Store& store, const std::string& checkpoint_path);
// What a finished repair answered: its folder, its certificate, and whether it lost nothing.
Result<RepairResult> finished_repair(const Directory& checkpoint);

}  // namespace shw
