// Proves a finished result again, at any later time.
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
// Undecided without a certificate. With `source`, the checkpoint that it was made from, every
// element is also compared with its place by the plan in the certificate: this finds a result that
// was changed and certified again with matching hashes. Each tile is hashed and compared in one go,
// so that each side is read once. In a team each item is hashed and compared by one rank. `memory`
// limits items that are decoded whole; larger ones are decoded while reading.
Result<VerifyReport> verify_repair(const Checkpoint& checkpoint, Progress* progress = nullptr,
                                   std::shared_ptr<const Checkpoint> source = nullptr,
                                   Team* team = nullptr, std::uint64_t memory = kDefaultMemory);
// Opens `named` from local files: a folder, or a file that a certificate names.
Result<VerifyReport> verify_repair(const std::string& named, Progress* progress = nullptr,
                                   Team* team = nullptr);

}  // namespace shw
