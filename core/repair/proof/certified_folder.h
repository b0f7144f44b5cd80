// A folder with a certificate.json before its checkpoint is opened, or when it cannot be opened.
#pragma once

#include <optional>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/base/team.h"
#include "core/repair/proof/verify_report.h"

namespace shw {

// Verdict on a certified result that cannot be opened any more. It is broken if the certificate's
// own hash matches and all ranks see damage, or if a certified file is missing or changed;
// otherwise nullopt. `error` is null if it opened. Every rank of the team must call this.
Result<std::optional<VerifyReport>> verdict_if_unopenable(const std::string& path,
                                                          const Error* error, Progress* progress,
                                                          Team* team);
// The folder whose certificate.json names this file, because a user may type the file that a verb
// wrote ("out/model.pt") but the whole folder is proved. Otherwise the path unchanged.
std::string folder_that_certifies(const std::string& path);

}  // namespace shw
