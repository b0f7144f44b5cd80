// A folder with a certificate.json, before what lies in it is opened, and where it opens no more.
#pragma once

#include <optional>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/base/team.h"
#include "core/repair/proof/verify_report.h"

namespace shw {

// A result that opens no more was what its certificate says when that was written: broken, where
// the certificate's own hash holds and all of a team meet damage, or a certified file that is gone
// or another. Nothing else is said of `error`, which is null where it opened; every member of a
// team has to ask.
Result<std::optional<VerifyReport>> broken_opening(const std::string& path, const Error* error,
                                                   Progress* progress, Team* team);
// The folder of a certificate.json that names this file of it, as a person does who typed what the
// verb wrote ("out/model.pt"): what is proved is all that it certifies. Else the path as it is.
std::string certified_whole(const std::string& path);

}  // namespace shw
