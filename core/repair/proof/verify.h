// Proves again what a repair proved, whenever somebody asks.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/base/run_limits.h"
#include "core/model/checkpoint.h"
#include "core/repair/proof/verify_report.h"

namespace shw {

class Team;

// Checks a result against its certificate.json: coverage, hashes of all items, kept + lost = total.
// Undecided without one. With the checkpoint that it was made of, `source`, every element is held
// against that too, where the plan that the certificate keeps puts it: a result that was changed
// and certified anew, with all its hashes, is told by its elements. Each tile is then hashed and
// compared in one go, so that the disk reads either side once. A team hashes together, each item
// once, and whoever has hashed one compares it. `memory`: what may be taken for items that are
// decoded whole; larger ones are decoded as they are read.
Result<VerifyReport> verify_repair(const Checkpoint& checkpoint, Progress* progress = nullptr,
                                   std::shared_ptr<const Checkpoint> source = nullptr,
                                   Team* team = nullptr, std::uint64_t memory = kDefaultMemory);
// Opened from this machine's files: a folder, or a file that its certificate names.
Result<VerifyReport> verify_repair(const std::string& named, Progress* progress = nullptr,
                                   Team* team = nullptr);

}  // namespace shw
