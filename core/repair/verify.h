// Proves again what a repair proved, whenever somebody asks.
#pragma once

#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/repair/verify_report.h"

namespace shw {

// Checks a repaired checkpoint against its certificate.json: coverage, hashes of all items, kept +
// lost = total, and bytes that moved mapped back to what they were. Undecided without one.
Result<VerifyReport> verify_repair(const Checkpoint& checkpoint, Progress* progress = nullptr);
// Opened from this machine's files.
Result<VerifyReport> verify_repair(const std::string& checkpoint_path,
                                   Progress* progress = nullptr);

}  // namespace shw
