// An info finding about how files were read if several interpretations are possible.
#pragma once

#include <string>

#include "core/model/finding.h"

namespace shw {

inline Finding how_read_finding(std::string subject, std::string cause) {
  Finding finding{
      .rule = "how-read", .severity = Severity::kInfo, .subjects = {std::move(subject)}};
  finding.cause = std::move(cause);
  return finding;
}

}  // namespace shw
