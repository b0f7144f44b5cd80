// Checks a result against its certificate and, element by element, against its source.
#pragma once

#include <string>

#include "core/formats/open.h"
#include "core/repair/proof/verify.h"

namespace shw {

inline Result<VerifyReport> verified_against(const std::string& out, const Checkpoint& source) {
  SHW_TRY(auto result, open_checkpoint(out));
  SHW_TRY(VerifyReport report, verify_repair(*result, nullptr, {std::shared_ptr<void>(), &source}));
  bool all = report.against && report.against->compared == report.kept + report.lost;
  if (report.outcome == VerifyReport::Outcome::kProved && !all)
    return fail(ErrorKind::kDamaged, "proved, and not every element was compared");
  return report;
}

}  // namespace shw
