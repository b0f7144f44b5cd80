#include "core/formats/chosen_step.h"

#include <fmt/core.h>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"

namespace shw {

Finding told_chosen(const ChosenStep& chosen) {
  Finding finding =
      bad_record(chosen.folder, fmt::format("Opened {}, {}.", chosen.folder, chosen.why));
  finding.severity = chosen.gone ? Severity::kWarning : Severity::kInfo;
  if (chosen.gone)
    finding.cause =
        fmt::format("{}: it was deleted, or its save never began. {}", *chosen.gone, finding.cause);
  if (!chosen.aside.empty()) {
    finding.cause += fmt::format(" Not looked at: {}. A path to one of them opens that one.",
                                 some_of(chosen.aside));
    finding.subjects = chosen.aside;
  }
  finding.evidence = {{"opened", chosen.folder},
                      {"left_aside", static_cast<std::int64_t>(chosen.aside.size())}};
  return finding;
}

}  // namespace shw
