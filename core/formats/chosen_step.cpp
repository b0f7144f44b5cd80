#include "core/formats/chosen_step.h"

#include <fmt/core.h>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/how_read_finding.h"

namespace shw {

Finding chosen_step_finding(const ChosenStep& chosen) {
  std::string cause = fmt::format("Opened {}, {}.", chosen.folder, chosen.why);
  if (chosen.gone)
    cause = fmt::format("{}: it was deleted, or its save never started. {}", *chosen.gone, cause);
  if (!chosen.without_model.empty()) {
    const bool is_one = chosen.without_model.size() == 1;
    cause = fmt::format(
        "{} {} later, and {} trainer files but no model: the weights were lost, or their save was "
        "interrupted. A resumed run fails there. {}",
        short_list_text(chosen.without_model), is_one ? "is" : "are", is_one ? "holds" : "hold",
        cause);
  }
  if (!chosen.empty.empty()) {
    const bool is_one = chosen.empty.size() == 1;
    cause = fmt::format(
        "{} {} later, and {} no file: the save got no further, or has just started. A resumed run "
        "fails there. {}",
        short_list_text(chosen.empty), is_one ? "is" : "are", is_one ? "holds" : "hold", cause);
  }
  if (!chosen.tracker_note.empty()) cause += " " + chosen.tracker_note;
  const bool is_damaged = chosen.gone || !chosen.without_model.empty() || !chosen.empty.empty() ||
                          chosen.is_tracker_empty;
  Finding finding = is_damaged ? bad_record_finding(chosen.folder, std::move(cause))
                               : how_read_finding(chosen.folder, std::move(cause));
  if (is_damaged) finding.severity = Severity::kWarning;
  if (!chosen.aside.empty()) {
    finding.cause += fmt::format(" Not opened: {}. To open one of them, give its path.",
                                 short_list_text(chosen.aside));
    finding.subjects = chosen.aside;
  }
  finding.evidence = {{"opened", chosen.folder},
                      {"left_aside", static_cast<std::int64_t>(chosen.aside.size())}};
  return finding;
}

std::optional<Finding> unfinished_step_finding(const ChosenStep& chosen) {
  if (chosen.last_file.empty()) return std::nullopt;
  Finding finding{.rule = "side-file", .severity = Severity::kWarning};
  finding.subjects = {chosen.folder + "/" + chosen.last_file};
  finding.cause = fmt::format(
      "{0} lacks {1}, which {2} has. transformers' Trainer writes it last, so the save of {0} was "
      "interrupted or is still running. A run that resumes from {0} fails, and Trainer takes the "
      "newest step by itself. Resume from {2}, or move {0} away.",
      chosen.folder, chosen.last_file, chosen.newest_finished);
  finding.evidence = {{"files_not_here", std::vector<std::string>{chosen.last_file}}};
  return finding;
}

void prefix_folder_to_error(Error& error, const std::string& folder) {
  std::string& file = error.place.file;
  // A reader of subfolders has already given the full path.
  const bool is_full = file.ends_with("/" + folder) || file.find("/" + folder + "/") != file.npos;
  if (file == folder || file.starts_with(folder + "/") || file.starts_with("/") || is_full) return;
  file = folder + (file.empty() ? "" : "/") + file;
}

tl::unexpected<Error> newest_step_error(Error error, const ChosenStep& chosen,
                                        const std::string& run) {
  prefix_folder_to_error(error, chosen.folder);
  if (error.kind == ErrorKind::kCancelled) return tl::unexpected<Error>(std::move(error));
  error.message = fmt::format("{} (in {}, {})", error.message, chosen.folder, chosen.why);
  if (!chosen.aside.empty()) {
    std::vector<std::string> newest(chosen.aside.rbegin(), chosen.aside.rend());
    error.advice += fmt::format("{}Also here: {}. To open one of them, give its path",
                                error.advice.empty() ? "" : " ", short_list_text(newest));
    error.advice +=
        run.empty() ? "." : ", or open the newest complete one as " + run + "/@latest-complete.";
  }
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace shw
