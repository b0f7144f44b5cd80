// Which of several steps was opened, and what was left aside.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/model/finding.h"

namespace shw {

struct ChosenStep {
  std::string folder;                    // of the top
  std::string why;                       // "which latest names"
  std::vector<std::string> aside = {};   // the other steps, in natural order
  std::optional<std::string> gone = {};  // the folder that a tracker names, where it is not there
};
// Of the opened step, for its report.
Finding told_chosen(const ChosenStep& chosen);

}  // namespace shw
