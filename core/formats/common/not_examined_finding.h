// The finding that a checkpoint contains data that this program does not read.
#pragma once

#include <string>
#include <vector>

#include "core/model/finding.h"

namespace shw {

inline Finding not_examined_finding(std::vector<std::string> subjects, std::string cause) {
  Finding finding{
      .rule = "not-looked-at", .severity = Severity::kInfo, .subjects = std::move(subjects)};
  finding.cause = std::move(cause);
  return finding;
}

}  // namespace shw
