#include "core/repair/proof/verify_report.h"

namespace shw {

std::string_view name(VerifyReport::Outcome outcome) {
  switch (outcome) {
    case VerifyReport::Outcome::kProved:
      return "proved";
    case VerifyReport::Outcome::kBroken:
      return "broken";
    case VerifyReport::Outcome::kUndecided:
      break;
  }
  return "undecided";
}

}  // namespace shw
