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
// A result that opens no more was what its certificate says when that was written: broken, where
// the certificate's own hash holds and all of a team meet damage, or a certified file that is gone
// or another. Nothing else is said of `error`, which is null where it opened; every member of a
// team has to ask.
Result<std::optional<VerifyReport>> broken_opening(const std::string& path, const Error* error,
                                                   Progress* progress, Team* team);
// The folder of a certificate.json that names this file of it, as a person does who typed what the
// verb wrote ("out/model.pt"): what is proved is all that it certifies. Else the path as it is.
std::string certified_whole(const std::string& path);
// Opened from this machine's files.
Result<VerifyReport> verify_repair(const std::string& checkpoint_path, Progress* progress = nullptr,
                                   Team* team = nullptr);

}  // namespace shw
