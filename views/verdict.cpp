#include "views/verdict.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "core/base/checked.h"
#include "core/io/path_suffix.h"
#include "core/model/evidence.h"
#include "core/report/listing.h"
#include "core/rules/consequence.h"
#include "core/rules/rules.h"
#include "core/rules/unjudged.h"
#include "core/rules/unreadable.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

// Number of elements that findings count as lost or never saved.
std::int64_t lost_elements_in(const std::vector<Finding>& findings) {
  std::int64_t lost = 0;
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kInfo) continue;
    for (const char* loss : {"total_lost_elements", "missing_elements"}) {
      const auto* count = find_evidence<std::int64_t>(finding, loss);
      if (count != nullptr && *count > 0)
        lost = checked_add(lost, *count).value_or(std::numeric_limits<std::int64_t>::max());
    }
  }
  return lost;
}

// Text about losses if there is no plan, from the findings.
std::string losses_text_without_plan(const CheckReport& report, const FindingEffects& about) {
  std::string text = lost_data_text(report.findings, about.unreadable);
  const std::int64_t lost = lost_elements_in(report.findings);
  if (lost == 0) return text;
  constexpr std::string_view kSomething = "Something is lost";
  const std::string counted =
      plural(static_cast<std::uint64_t>(lost), "element") + (lost == 1 ? " is lost" : " are lost");
  if (const std::size_t at = text.find(kSomething); at != text.npos)
    return text.replace(at, kSomething.size(), counted);
  return counted + ". " + text;
}

std::string outlook_of(const CheckReport& report, const Plan* plan, const FindingEffects& about) {
  if (plan == nullptr || !plan->repairs()) return losses_text_without_plan(report, about);
  std::uint64_t moved = 0;
  std::int64_t lost = 0;
  for (const Operation& operation : plan->operations) {
    moved += operation.bytes_moved;
    lost += operation.elements_lost;
  }
  // Losses come first, because a narrow bar elides the end. Damage that remains is described only
  // by its findings.
  const auto counting = [](const std::vector<Finding>& findings) {
    return std::count_if(findings.begin(), findings.end(), has_unreadable_counts);
  };
  // If the plan leaves every unreadable tensor, uses the overall count, in which a tensor of two
  // findings counts once.
  const bool is_all = counting(plan->undecided) == counting(report.findings);
  std::string losses = unreadable_text(is_all ? about.unreadable : unreadable_in(plan->undecided));
  if (!losses.empty()) losses += ". ";
  if (lost > 0)
    losses += plural(static_cast<std::uint64_t>(lost), "element") + (lost == 1 ? " is" : " are") +
              " lost; the repair keeps the rest and marks them. ";
  std::string leaves;
  if (!plan->undecided.empty())
    leaves = " " + plural(plan->undecided.size(), "finding") +
             (plan->undecided.size() == 1 ? " stays" : " stay") + " unrepaired.";
  if (lost > 0) return losses.substr(0, losses.size() - 1) + leaves;
  std::string does = plan->transforms() ? "writes another form."
                     : moved == 0       ? "moves no byte."
                                        : "rewrites " + human_bytes(moved) + ".";
  if (!plan->lossless) return losses + "What was lost stays lost; the repair " + does + leaves;
  return leaves.empty() ? "Nothing is lost; the repair " + does
                        : losses + "The repair mends a part and " + does + leaves;
}

// The title of a finding. A rule's title describes its errors; its warnings may have another text.
std::string_view title_of_finding(const Finding& finding) {
  const Rule& rule = rule_of(finding);
  const bool is_mild = finding.severity == Severity::kWarning && !rule.words.as_warning.empty();
  return is_mild ? rule.words.as_warning : rule.title;
}

VerdictText verdict_of_findings(const Snapshot& snapshot, const FindingEffects& about) {
  const CheckReport& report = *snapshot.report;
  VerdictText text;
  bool error = false, remedy = false;
  for (const Finding& finding : report.findings) {
    if (finding.severity == Severity::kInfo) continue;
    error = error || finding.severity == Severity::kError;
    remedy = remedy || finding.remedy.has_value();
  }
  text.tone = error ? Tone::kBad : Tone::kWarn;
  text.title = check_headline(*snapshot.checkpoint, report, about.affected);
  if (about.affected.causes == 1) {
    for (const Finding& finding : report.findings) {
      if (find_rule(finding.rule) != nullptr && finding.severity != Severity::kInfo)
        text.detail = sentence(title_of_finding(finding)) + ". ";
    }
  }
  text.brief = outlook_of(report, snapshot.plan.get(), about);
  text.detail += text.brief;
  const Plan* plan = snapshot.edits ? snapshot.edits->edit().whole.get() : snapshot.plan.get();
  if (remedy && (plan == nullptr || !plan->empty())) {
    text.next = Action::kReview;
    text.next_label = "Review repair";
  } else if (std::ranges::any_of(report.findings, can_abandon_missing_files)) {
    text.next = Action::kReview;
    text.next_label = "Fill what is lost";
  } else if (report.depth != Depth::kData) {
    text.next = Action::kCheckData;
    text.next_label = "Check every byte";
  }
  return text;
}

// Text about what was read: items without a checksum may contain other bytes than were written.
std::string read_text(const CheckReport& report) {
  return has_unproved_bytes(report.unjudged)
             ? "Every byte of every tensor was read."
             : "Every byte of every tensor was read and agrees with its checksum.";
}

// Counts infos too, because the side column shows them: "No finding" would contradict it.
void add_notes(const CheckReport& report, VerdictText& text) {
  const auto notes = static_cast<std::size_t>(
      std::count_if(report.findings.begin(), report.findings.end(),
                    [](const Finding& one) { return one.severity == Severity::kInfo; }));
  if (notes != 0 && text.title.starts_with("No finding:"))
    text.title.insert(text.title.find(':'), ", " + plural(notes, "note"));
}

VerdictText verdict_of_clean(const Snapshot& snapshot) {
  const CheckReport& report = *snapshot.report;
  VerdictText text{Tone::kOk, check_headline(*snapshot.checkpoint, report, {}), "", std::nullopt,
                   ""};
  if (!rules_with_hints(report.unjudged).empty()) text.tone = Tone::kWarn;
  if (report.verdict == Verdict::kUndecided) text.tone = Tone::kUnknown;
  text.detail = report.depth == Depth::kMetadata ? "The metadata and every file size agree."
                : report.depth == Depth::kHeaders
                    ? "The metadata and the header of every item agree."
                    : read_text(report);
  if (report.verdict == Verdict::kUndecided) text.detail = report.deeper;
  add_notes(report, text);
  if (report.depth != Depth::kData) {
    text.next = Action::kCheckData;
    text.next_label = "Check every byte";
  }
  return text;
}

// After the checkpoint was written in another form.
VerdictText verdict_of_written(const Snapshot& snapshot, const JobState& job) {
  const RepairResult& result = *snapshot.repaired;
  const std::string form =
      snapshot.executed->written != nullptr ? " as " + snapshot.executed->written->format : "";
  VerdictText text{Tone::kUnknown, "Written" + form, result.output, std::nullopt, ""};
  if (snapshot.verified == nullptr) {
    text.title += job.running ? ", the proof is under way" : ", not yet proved";
    if (job.running) return text;
    text.next = Action::kVerify;
    text.next_label = "Verify";
    return text;
  }
  const VerifyReport& verified = *snapshot.verified;
  if (verified.outcome != VerifyReport::Outcome::kProved) {
    const bool is_broken = verified.outcome == VerifyReport::Outcome::kBroken;
    text.tone = is_broken ? Tone::kBad : Tone::kUnknown;
    text.title = is_broken ? "The written checkpoint is broken" : "Written" + form + ", not proved";
    if (!verified.reasons.empty()) text.detail = verified.reasons.front();
    return text;
  }
  text.tone = result.lossless ? Tone::kOk : Tone::kWarn;
  text.title += ", proved";
  text.detail += ": " + result_loss_text(result) + ".";
  if (snapshot.result_findings != nullptr && !snapshot.result_findings->empty()) {
    text.tone =
        snapshot.result_findings->front().severity == Severity::kError ? Tone::kBad : Tone::kWarn;
    text.title += "; " + plural(snapshot.result_findings->size(), "finding") +
                  " in it: " + snapshot.result_findings->front().rule;
  }
  text.next = Action::kOpenRepaired;
  text.next_label = "Open result";
  return text;
}

VerdictText verdict_of_repaired(const Snapshot& snapshot, const JobState& job) {
  if (is_rewrite_only_result(snapshot)) return verdict_of_written(snapshot, job);
  const Plan* plan = executed_plan(snapshot);
  const std::string changed =
      plan ? ": " + plural(snapshot.executed->changed_tensors, "tensor") : "";
  VerdictText text{Tone::kOk, "", "", std::nullopt, ""};
  std::string in = is_repaired_elsewhere(snapshot) ? " in it" : " in " + snapshot.repaired->output;
  if (snapshot.verified == nullptr) {
    text.tone = Tone::kUnknown;
    text.title =
        "Repaired" + changed + (job.running ? ", the proof is under way" : ", not yet proved");
    text.detail = snapshot.repaired->output;
    if (job.running) return text;
    text.next = Action::kVerify;
    text.next_label = "Verify";
    return text;
  }
  const VerifyReport& verified = *snapshot.verified;
  switch (verified.outcome) {
    case VerifyReport::Outcome::kProved:
      text.title = "Repaired" + (plan ? changed + " mended" : changed) + ", proved";
      if (verified.lost != 0) {
        text.tone = Tone::kWarn;
        text.title = "Repaired, " + plural(static_cast<std::uint64_t>(verified.lost), "element") +
                     " lost" + changed + ", proved";
      }
      if (snapshot.repaired->output != snapshot.options.checkpoint) {
        text.next = Action::kOpenRepaired;
        text.next_label = "Open repaired";
      }
      text.detail =
          verified.lost == 0
              ? sentence(result_loss_text(*snapshot.repaired)) + in + "."
              : "What is lost was filled and is not a trained value; all others kept" + in + ".";
      if (snapshot.result_findings != nullptr && !snapshot.result_findings->empty()) {
        text.tone = Tone::kBad;
        text.title = "Repaired in part, " + plural(snapshot.result_findings->size(), "finding") +
                     " left: " + snapshot.result_findings->front().rule;
      }
      break;
    case VerifyReport::Outcome::kBroken:
      text.tone = Tone::kBad;
      text.title = "The repaired checkpoint is broken";
      text.detail = verified.reasons.empty() ? "" : verified.reasons.front();
      break;
    case VerifyReport::Outcome::kUndecided:
      text.tone = Tone::kUnknown;
      text.title = "Repaired, but not proved";
      text.detail = verified.reasons.empty() ? "" : verified.reasons.front();
      break;
  }
  return text;
}

// After a repair into a copy, the open checkpoint keeps its verdict, followed by that of the copy.
VerdictText verdict_of_copy(const Snapshot& snapshot, const JobState& job,
                            const FindingEffects& about) {
  VerdictText copy = verdict_of_repaired(snapshot, job);
  VerdictText text = verdict_of_findings(snapshot, about);
  const std::string at = (is_rewrite_only_result(snapshot) ? "Written to " : "Repaired copy at ") +
                         snapshot.repaired->output;
  text.detail = at + ": " + copy.title + ".";
  if (snapshot.verified != nullptr && !copy.detail.empty()) text.detail += " " + copy.detail;
  text.brief = at;
  text.next = copy.next;
  text.next_label = copy.next_label;
  return text;
}

VerdictText verdict_of_error(const Snapshot& snapshot) {
  const Error& error = *snapshot.error;
  VerdictText text{Tone::kBad, "", "", std::nullopt, ""};
  if (error.kind == ErrorKind::kCancelled) {
    text.tone = Tone::kQuiet;
    text.title = "Stopped on request";
    text.detail = "What was opened is as it was.";
    return text;
  }
  text.title = snapshot.checkpoint == nullptr ? "Cannot be opened" : "That did not work";
  std::string where = error.place.file;
  bool says_byte = error.message.find("at byte ") != std::string::npos;
  if (error.place.offset && !says_byte)
    where += (where.empty() ? "byte " : " at byte ") + human_count(*error.place.offset);
  if (!error.place.tensor.empty()) where += (where.empty() ? "" : ", ") + error.place.tensor;
  text.detail = (where.empty() ? "" : where + ": ") + error.message;
  return text;
}

// Missing inputs that were skipped, and newer incomplete steps that were skipped for the newest
// complete one.
std::string skipped_inputs_text(const Snapshot& snapshot) {
  if (!snapshot.left_aside.empty())
    return "Opened without " + short_list_text(snapshot.left_aside) + ", which " +
           (snapshot.left_aside.size() == 1 ? "was" : "were") + " not found. ";
  if (snapshot.passed_over.empty()) return {};
  return "Passed over, since not complete: " + short_list_text(snapshot.passed_over) + ". ";
}

// Steps beyond the limit, and a folder that is not there any more: what is shown is not all.
void mention_unlisted_steps(const verbs::RunSteps& run, VerdictText& text) {
  if (run.not_read != 0) {
    text.title += ", " + plural(run.not_read, "older entry") + " not checked";
    if (text.tone == Tone::kOk) text.tone = Tone::kQuiet;
  }
  if (!run.error) return;
  text.tone = Tone::kBad;
  text.title = run.steps.empty() ? "The folder of steps cannot be read"
                                 : "The folder of steps cannot be read any more: " + text.title;
  text.detail = (run.error->place.file.empty() ? "" : run.error->place.file + ": ") +
                run.error->message + ".";
}

// "12 steps: 2 with errors, 9 without a finding, 1 not checked yet".
VerdictText verdict_of_run(const verbs::RunSteps& run) {
  std::size_t clean = 0, bad = 0, warned = 0, undecided = 0, open = 0;
  for (const verbs::RunStep& step : run.steps) {
    if (!step.is_known)
      ++open;
    else if (step.is_error)
      ++bad;
    else if (step.verdict == Verdict::kUndecided)
      ++undecided;
    else
      ++(step.verdict == Verdict::kClean && !step.has_hint ? clean : warned);
  }
  VerdictText text;
  text.tone = bad != 0                  ? Tone::kBad
              : warned != 0             ? Tone::kWarn
              : undecided != 0          ? Tone::kUnknown
              : open != 0 || clean == 0 ? Tone::kQuiet
                                        : Tone::kOk;
  text.title = plural(run.steps.size(), "step");
  const std::pair<std::size_t, const char*> parts[] = {{bad, " with errors"},
                                                       {warned, " with a warning or a hint"},
                                                       {undecided, " undecided"},
                                                       {clean, " without a finding"},
                                                       {open, " not checked yet"}};
  const char* mark = ": ";
  for (auto [count, words] : parts) {
    if (count == 0) continue;
    text.title += mark + human_count(count) + words;
    mark = ", ";
  }
  text.detail = "Each step was checked by its metadata and file sizes. Open one to check more.";
  mention_unlisted_steps(run, text);
  return text;
}

// Mentions NaN in the run's statistics: the steps are not called clean then.
void mention_run_numbers(const Snapshot& snapshot, VerdictText& text) {
  if (snapshot.run_numbers == nullptr || snapshot.run_numbers->path != snapshot.run->path) return;
  std::size_t nan = 0, infinite = 0;
  for (const verbs::RunStep& step : snapshot.run->steps) {
    const verbs::StepNumbers* numbers = numbers_of(*snapshot.run_numbers, step);
    if (numbers == nullptr) continue;
    nan += numbers->all.nan != 0 ? 1 : 0;
    infinite += numbers->all.nan == 0 && numbers->all.infinite != 0 ? 1 : 0;
  }
  if (nan != 0) text.title += "; NaN in " + plural(nan, "step");
  if (infinite != 0) text.title += "; infinite elements in " + plural(infinite, "step");
  if (nan != 0)
    text.tone = Tone::kBad;
  else if (infinite != 0 && text.tone != Tone::kBad)
    text.tone = Tone::kWarn;
}

// Mentions changes on disk by other processes first, because the display may be outdated.
void mention_changes_on_disk(const Snapshot& snapshot, VerdictText& text) {
  if (snapshot.changed_on_disk.empty()) return;
  text.title += "; changed on disk since";
  text.unjudged = "Changed on disk since it was opened: " + snapshot.changed_on_disk + ".";
  text.next = Action::kReload;
  text.next_label = "Open again";
  if (text.tone == Tone::kOk || text.tone == Tone::kQuiet) text.tone = Tone::kWarn;
}

// Mentions NaN and infinity that the count of all tensors found and no check has reported yet.
void mention_tensor_numbers(const Snapshot& snapshot, const FindingEffects& about,
                            VerdictText& text) {
  if (snapshot.numbers == nullptr || snapshot.report == nullptr || snapshot.repaired != nullptr ||
      snapshot.report->depth == Depth::kData)
    return;
  if (about.nan_tensors != 0) text.title += "; NaN in " + plural(about.nan_tensors, "tensor");
  if (about.infinite_tensors != 0)
    text.title += "; infinite elements in " + plural(about.infinite_tensors, "tensor");
  const std::size_t partly_read_tensors = snapshot.numbers->partly_read_tensors;
  if (partly_read_tensors != 0)
    text.title += "; " + plural(partly_read_tensors, "tensor") + " could not be read whole";
  if (about.nan_tensors + about.infinite_tensors + partly_read_tensors != 0 &&
      (text.tone == Tone::kOk || text.tone == Tone::kQuiet))
    text.tone = Tone::kWarn;
}

}  // namespace

std::string with_desktop_terms(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"--against a", "a"},
      {"--against", "another checkpoint"},
      {"--spec", "a spec"},
      {"--mesh", "the mesh"},
      {"--data", "every byte read"},
      {"--depth headers", "the headers read"},
      {"convert --weights-only", "\"Only the weights\""},
      {"--dequantise", "\"Quantised weights: Decoded\""},
      {" with --out", " in the field above"}};
  for (auto [option, words] : kWords) {
    for (std::size_t at = 0; (at = text.find(option, at)) != text.npos; at += words.size())
      text.replace(at, option.size(), words);
  }
  return text;
}

static VerdictText verdict_as_opened(const Snapshot& snapshot, const JobState& job,
                                     const FindingEffects& about) {
  // The steps stay what they are if one of them could not be opened; a notice says why.
  if (snapshot.error && snapshot.report == nullptr && !run_is_shown(snapshot))
    return verdict_of_error(snapshot);
  if (run_is_shown(snapshot) && !job.running) {
    VerdictText text = verdict_of_run(*snapshot.run);
    mention_run_numbers(snapshot, text);
    return text;
  }
  if (snapshot.checkpoint == nullptr) {
    if (job.running || !snapshot.options.checkpoint.empty())
      return {Tone::kQuiet, "Opening " + snapshot.options.checkpoint,
              "Metadata only; no tensor byte is read.", std::nullopt, ""};
    return {Tone::kQuiet, "Nothing is open", "", std::nullopt, ""};
  }
  if (is_repaired_elsewhere(snapshot) && snapshot.report != nullptr && about.affected.causes != 0)
    return verdict_of_copy(snapshot, job, about);
  if (snapshot.repaired != nullptr) return verdict_of_repaired(snapshot, job);
  if (snapshot.report == nullptr) {
    std::string tensors = plural(snapshot.checkpoint->tensor_count(), "tensor");
    if (job.running) return {Tone::kQuiet, "Checking " + tensors, "", std::nullopt, ""};
    return {Tone::kQuiet, tensors + ", not yet checked", "", Action::kCheck, "Check"};
  }
  bool findings = std::any_of(snapshot.report->findings.begin(), snapshot.report->findings.end(),
                              [](const Finding& f) { return f.severity != Severity::kInfo; });
  VerdictText text = findings ? verdict_of_findings(snapshot, about) : verdict_of_clean(snapshot);
  text.unjudged = skipped_inputs_text(snapshot);
  if (!snapshot.report->unjudged.empty())
    text.unjudged += "Not checked: " + with_desktop_terms(to_text(snapshot.report->unjudged));
  return text;
}

VerdictText verdict_of(const Snapshot& snapshot, const JobState& job, const FindingEffects& about) {
  VerdictText text = verdict_as_opened(snapshot, job, about);
  mention_tensor_numbers(snapshot, about, text);
  mention_changes_on_disk(snapshot, text);
  text.detail = desktop_text(text.detail);
  text.unjudged = desktop_text(text.unjudged);
  return text;
}

RecentVerdict verdict_to_remember(const Snapshot& snapshot) {
  Snapshot own = snapshot;
  own.error.reset();
  if (is_repaired_elsewhere(own)) own.repaired = nullptr;
  const VerdictText shown = verdict_of(own, {}, *make_finding_effects(own));
  return {shown.tone == Tone::kOk     ? "clean"
          : shown.tone == Tone::kBad  ? "findings"
          : shown.tone == Tone::kWarn ? "warnings"
                                      : "undecided",
          shown.title};
}

const JobState& shown_job(const JobState& job, std::span<const JobState> concurrent_jobs) {
  auto proof = std::find_if(concurrent_jobs.begin(), concurrent_jobs.end(),
                            [](const JobState& each) { return each.verb == "verify"; });
  return job.running || proof == concurrent_jobs.end() ? job : *proof;
}

std::string window_title(const Digest& digest, const JobState& job) {
  const Snapshot& snapshot = *digest.snapshot;
  const std::string& opened_as = snapshot.options.checkpoint;
  std::string path = path_without_suffixes(opened_as);
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (path.empty()) return "Shardwright";
  // With the folder around it: many runs have a step_9000.
  const std::size_t name = path.rfind('/');
  std::string title = short_path(opened_as);
  if (name != path.npos && name != 0)
    title = path.substr(path.rfind('/', name - 1) + 1, name - path.rfind('/', name - 1)) + title;
  return title + " - " + verdict_of(snapshot, job, *digest.about).title + " - Shardwright";
}

}  // namespace shw
