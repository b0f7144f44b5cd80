// Whether a repair can be done in place, and how it is taken back. `.metadata` alone is replaced,
// and the old one kept as `.metadata.shardwright-undo`.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/repair/plan_types.h"

namespace shw {

class Store;

// Whether the plan can be carried out with in_place: the error says why it cannot.
Status check_in_place(const Checkpoint& checkpoint, const Plan& plan);
// Takes back what --in-place did: the old `.metadata` returns, byte for byte. kUsage where there is
// nothing to take back.
Status undo_repair(Store& store, const std::string& checkpoint_path);
Status undo_repair(const std::string& checkpoint_path);  // on this machine

}  // namespace shw
