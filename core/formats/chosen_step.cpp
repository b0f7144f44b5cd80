#include "core/formats/chosen_step.h"

#include <fmt/core.h>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/read_note.h"

namespace shw {

Finding chosen_step_finding(const ChosenStep& chosen) {
  std::string cause = fmt::format("Opened {}, {}.", chosen.folder, chosen.why);
  if (chosen.gone)
    cause = fmt::format("{}: it was deleted, or its save never began. {}", *chosen.gone, cause);
  if (!chosen.without_model.empty()) {
    const bool is_one = chosen.without_model.size() == 1;
    cause = fmt::format(
        "{} {} later, and {} the files of a trainer and no model: the weights were "
        "lost, or their save did not finish. A resumed run stops there. {}",
        some_of(chosen.without_model), is_one ? "is" : "are", is_one ? "holds" : "hold", cause);
  }
  const bool is_damaged = chosen.gone || !chosen.without_model.empty();
  Finding finding = is_damaged ? bad_record(chosen.folder, std::move(cause))
                               : read_note(chosen.folder, std::move(cause));
  if (is_damaged) finding.severity = Severity::kWarning;
  if (!chosen.aside.empty()) {
    finding.cause += fmt::format(" Not opened: {}. A path to one of them opens that one.",
                                 some_of(chosen.aside));
    finding.subjects = chosen.aside;
  }
  finding.evidence = {{"opened", chosen.folder},
                      {"left_aside", static_cast<std::int64_t>(chosen.aside.size())}};
  return finding;
}

}  // namespace shw
