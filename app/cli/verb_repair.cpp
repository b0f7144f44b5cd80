// plan, repair, verify, undo: verbs that change a checkpoint or show what would change.
#include <algorithm>

#include "app/cli/verbs.h"
#include "core/io/path_text.h"
#include "core/io/store.h"
#include "core/model/reachable.h"
#include "core/repair/plan/operations.h"
#include "core/repair/run/estimate_text.h"
#include "core/repair/run/in_place.h"
#include "core/report/answers.h"
#include "core/report/report.h"
#include "core/report/text.h"
#include "core/verbs/abandon_missing.h"
#include "core/verbs/transforms.h"

namespace shw::cli {

namespace {

// Notes that a deeper check, or one with a reference, may find more to repair.
void print_depth_note(Context& context, const CheckReport& report) {
  const TextOptions options = text_options(context);
  std::string words = "No finding (depth " + std::string(name(report.depth)) + ").";
  if (!report.unjudged.empty()) words += "\n" + not_checked_text(report.unjudged, options.width);
  context.terminal.say(words);
}

}  // namespace

Result<Plan> requested_or_new_plan(Context& context, const verbs::Opened& opened) {
  const Options& options = context.options;
  if (!options.plan.empty()) {
    if (!options.fill.empty())
      return fail(ErrorKind::kUsage, "--plan and --fill cannot be combined", {},
                  "The plan already says what it fills with; make a new plan with --fill.");
    return verbs::read_plan(opened, options.plan, &context.progress, context.team);
  }
  SHW_TRY(CheckReport report, check_opened(context, opened));
  SHW_TRY(Plan plan, verbs::plan(opened, report, options.fill, &context.progress, context.team));
  if (plan.empty() && plan.undecided.empty()) print_depth_note(context, report);
  if (plan.checkpoint.empty()) plan.checkpoint = options.checkpoint;
  return plan;
}

namespace {

// The size of the result, the free space there, and the option that writes less. Skipped for
// millions of chunks, because computing it takes seconds.
std::string repair_cost_text(const Options& options, const Checkpoint& checkpoint,
                             const Plan& plan) {
  constexpr std::uint32_t kMaxChunks = 200'000;
  const bool fits = static_cast<bool>(check_in_place(checkpoint, plan));
  if (options.in_place) return "It rewrites .metadata and copies no file; `undo` takes it back.\n";
  std::string text;
  if (checkpoint.chunk_count() <= kMaxChunks) {
    ApplyOptions wanted{options.out, false, options.checkpoint};
    auto outlook = outlook_of(checkpoint, plan, wanted);
    auto output =
        outlook ? output_of(posix_store(), checkpoint, wanted) : Result<std::string>(std::string());
    auto free = output ? posix_store().free_bytes(parent_of(*output)) : Result<std::uint64_t>(0);
    if (outlook && output && free)
      text = "It writes " + human_bytes(outlook->bytes_written) + " into " + printable(*output) +
             ": " + plural(outlook->files_copied, "file") + " copied (" +
             human_bytes(outlook->bytes_copied) + "), " + human_count(outlook->files_made) +
             " made; " + human_bytes(*free) + " are free there.\n";
  }
  if (fits) text += "--in-place is enough: it replaces only .metadata, and `undo` restores it.\n";
  return text;
}

// Text of --explain, the same as in the window under "what it takes".
std::string plan_estimate_text(const Plan& plan, const Result<RepairEstimate>& outlook) {
  std::string text = "\n" + summary_text_of(plan) + "\n";
  if (!outlook)
    return text + "The plan cannot be executed: " + printable(outlook.error().message) + "\n";
  for (const auto& [label, value] : estimate_rows(*outlook))
    text += "  " + label + std::string(12 - std::min<std::size_t>(label.size(), 11), ' ') + value +
            "\n";
  return text;
}

// The plan of --plan, of --fill for missing files, or of the findings; then the steps of --then.
Result<Plan> requested_plan(Context& context, const verbs::Opened& opened) {
  const Options& options = context.options;
  std::optional<Plan> without_files;
  if (options.plan.empty()) {
    SHW_TRY(without_files,
            verbs::plan_dropping_missing_data(opened, options.fill, &context.progress));
  }
  SHW_TRY(Plan plan, without_files ? Result<Plan>(std::move(*without_files))
                                   : requested_or_new_plan(context, opened));
  SHW_TRY(const std::vector<std::string> remarks,
          verbs::add_steps(opened, options, plan, &context.progress));
  for (const std::string& remark : remarks) context.terminal.say(printable(remark));
  return plan;
}

// Advises --fill if files are missing and no fill was given.
void print_fill_advice(Context& context, const verbs::Opened& opened) {
  if (!context.options.fill.empty()) return;
  const auto steps = verbs::plan_dropping_missing_data(opened, "zero", &context.progress);
  if (!steps || !*steps) return;
  context.terminal.say(
      "\nThe data of missing files can be dropped and the rest kept; with --fill from:CHECKPOINT "
      "it is taken from another checkpoint:\n  " +
      command_line("plan", context.options) + " --fill zero");
}

}  // namespace

int run_plan(Context& context) {
  auto opened = open_all(context);
  if (!opened) return fail_with(context, opened.error());
  auto plan = requested_plan(context, *opened);
  if (!plan) return fail_with(context, plan.error());
  if (plan->transforms()) return print_steps_plan(context, *opened, *plan);
  const Checkpoint& checkpoint = *opened->checkpoint;
  bool explains = !plan->empty() && (context.options.json || context.options.explain);
  auto outlook = explains ? outlook_of(checkpoint, *plan, {context.options.out})
                          : Result<RepairEstimate>(RepairEstimate{});
  if (context.options.json) {
    context.terminal.out_line(explains ? verbs::estimate_to_json(checkpoint, *plan, outlook)
                                       : plan_to_json(checkpoint, *plan));
  } else {
    context.terminal.out(plan_to_text(*plan, style_of(context)));
    if (explains) context.terminal.out(plan_estimate_text(*plan, outlook));
    if (!plan->empty() && check_all_reachable(checkpoint))
      context.terminal.out("\n" + repair_cost_text(context.options, checkpoint, *plan));
    if (!plan->empty() && check_all_reachable(checkpoint))
      context.terminal.say(
          "\nNothing was written. To run it:  " + repair_command_line(checkpoint, context.options) +
          (repairs_anything(*plan) ? "" : " --in-place"));
    else if (!plan->empty())
      context.terminal.say("\nNothing was written: all files must be present first.");
    if (!check_all_reachable(checkpoint)) print_fill_advice(context, *opened);
  }
  // Findings that the plan does not repair remain.
  return plan->undecided.empty() ? kClean : kFindings;
}

namespace {

// Asks before anything is written, unless --yes was given.
Status confirm_repair(Context& context, const Checkpoint& checkpoint, const Plan& plan,
                      const std::string& output) {
  if (context.options.yes) return {};
  if (context.team != nullptr) return confirmation_required_error();
  Terminal& terminal = context.terminal;
  if (!terminal.interactive()) {
    return fail(ErrorKind::kUsage, "nothing was written: no terminal for a prompt, and no --yes",
                {}, "Review the plan with `shardwright plan`, then run this again with --yes.");
  }
  terminal.error(plan_to_text(plan, style_of(context)));
  terminal.error(lost_to_text(checkpoint, plan));
  terminal.error("\n" + repair_cost_text(context.options, checkpoint, plan));
  std::string question =
      context.options.in_place
          ? "\nReplace .metadata in " + printable(context.options.checkpoint) +
                " (undo restores it)? [y/N] "
          : "\nWrite the repaired checkpoint into " + printable(output) + "? [y/N] ";
  if (terminal.ask(question)) return {};
  return fail(ErrorKind::kCancelled, "nothing was written");
}

// Result of an empty plan: success if there are no findings, since the checkpoint can be used as it
// is; otherwise an error.
int nothing_to_repair(Context& context, const Plan& plan) {
  const Options& options = context.options;
  if (plan.undecided.empty()) {
    print_answer(context, options.json ? nothing_repaired_to_json(options.checkpoint)
                                       : "Nothing to repair. Nothing was written.");
    return kClean;
  }
  std::vector<std::string> rules;
  for (const Finding& finding : plan.undecided) {
    if (std::find(rules.begin(), rules.end(), finding.rule) == rules.end())
      rules.push_back(finding.rule);
  }
  if (!options.json) context.terminal.out(plan_to_text(plan, style_of(context)));
  return fail_with(context, {ErrorKind::kUnsupported,
                             "nothing was written: none of the findings can be repaired (" +
                                 short_list_text(rules) + ")",
                             {options.checkpoint},
                             ""});
}

int nothing_but_metadata(Context& context) {
  const Options& options = context.options;
  if (options.json) {
    print_answer(context, nothing_repaired_to_json(options.checkpoint));
    return kClean;
  }
  context.terminal.out_line("Nothing to repair. Nothing was written.");
  context.terminal.say(
      "Older versions of torch or Python cannot read its .metadata. Rewrite only that file, "
      "without copying a tensor:  " +
      command_line("repair", options) + " --in-place");
  return kClean;
}

std::string verdict_of(Context& context, const Plan& plan, const RepairResult& result,
                       std::size_t wrong) {
  TextStyle style = style_of(context);
  std::string loss = result.lossless ? result_loss_text(result)
                     : result.damage.empty()
                         ? "losses are listed in the certificate"
                         : "earlier damage and losses are listed in the certificate";
  if (!repairs_anything(plan)) {
    return wrong == 0 ? inked(style, Ink::kGreen, "metadata rewritten") + ", " + loss
                      : inked(style, Ink::kRed, "not repaired") +
                            ": the metadata was rewritten, but no finding was repaired";
  }
  if (wrong != 0) return inked(style, Ink::kGold, "repaired in part") + ", " + loss;
  return inked(style, result.lossless ? Ink::kGreen : Ink::kGold, "repaired") + ", " + loss;
}

// Prints the result, beginning with the findings that remain.
void print_result(Context& context, const Plan& plan, const RepairResult& result,
                  const std::vector<Finding>& remaining) {
  if (context.options.json) {
    print_answer(context, repair_to_json(result, remaining, &context.progress));
    return;
  }
  TextStyle style = style_of(context);
  std::size_t wrong = 0;
  for (const Finding& finding : remaining) {
    if (verbs::is_filled_elements_finding(finding)) continue;
    ++wrong;
    context.terminal.out_line(inked(style, Ink::kRed, "still wrong") + "  " + finding.rule + ": " +
                              printable(finding.cause));
  }
  context.terminal.out_line(
      verdict_of(context, plan, result, wrong) + "\n" + damage_to_text(result) +
      other_ranks_to_text(result) + uploaded_to_text(result) + "  checkpoint   " +
      printable(result.output) + "\n  certificate  " + printable(result.certificate));
  for (const Finding& finding : remaining) {
    if (verbs::is_filled_elements_finding(finding))
      context.terminal.out_line(printable(finding.cause));
  }
  context.terminal.say(stage_rates_text(context.progress) +
                       next_steps_text(result.output, context.options.in_place));
}

}  // namespace

int run_repair(Context& context) {
  const Options& options = context.options;
  if (options.in_place && !options.out.empty()) {
    return fail_with(context, {ErrorKind::kUsage,
                               "--out and --in-place cannot be combined",
                               {},
                               "A repair in place writes no other folder."});
  }
  if (options.in_place && options.integrity) {
    return fail_with(context, {ErrorKind::kUsage,
                               "--integrity and --in-place cannot be combined",
                               {},
                               "Hashes of all files can only be written into a new folder."});
  }
  auto opened = open_all(context);
  if (!opened) return fail_with(context, opened.error());
  auto plan = requested_plan(context, *opened);
  if (!plan) return fail_with(context, plan.error());
  if (plan->transforms()) return run_steps(context, *opened, *plan, "-repaired");
  if (plan->empty()) return nothing_to_repair(context, *plan);
  // An undamaged checkpoint is not copied only to rewrite its metadata.
  if (!repairs_anything(*plan) && plan->undecided.empty() && options.plan.empty() &&
      options.out.empty() && !options.in_place)
    return nothing_but_metadata(context);
  ApplyOptions wanted{options.out, options.in_place, options.checkpoint};
  wanted.memory = options.memory;
  wanted.device = device_options(context);
  wanted.team = context.team;
  wanted.integrity = options.integrity;
  auto output = output_of(posix_store(), *opened->checkpoint, wanted);
  if (!output) return fail_with(context, output.error());
  if (auto free = check_upload(context); !free) return fail_with(context, free.error());
  if (auto agreed = confirm_repair(context, *opened->checkpoint, *plan, *output); !agreed)
    return fail_with(context, agreed.error());

  auto result = [&] {
    ProgressLine line(context.terminal, context.progress);
    return verbs::repair(*opened, *plan, wanted, &context.progress);
  }();
  if (!result) return fail_with(context, result.error());
  print_reused_work(context, *result);
  print_device_use(context, result->device);
  print_traffic(context, result->traffic);
  auto remaining = [&] {
    ProgressLine line(context.terminal, context.progress);
    return verbs::findings_of_result(*opened, result->output, options.depth, &context.progress,
                                     context.team);
  }();
  if (!remaining) return fail_with(context, remaining.error());
  if (auto sent = upload_result(context, *result); !sent) return fail_with(context, sent.error());
  print_result(context, *plan, *result, *remaining);
  return exit_code_of_result(context, *opened->checkpoint, *remaining);
}

int run_verify(Context& context) {
  auto report = [&] {
    ProgressLine line(context.terminal, context.progress);
    return verbs::verify(context.options.checkpoint, &context.progress, context.options.against,
                         context.team, context.options.memory);
  }();
  if (!report) return fail_with(context, report.error());
  print_answer(context, context.options.json ? verify_to_json(*report)
                                             : verify_to_text(*report, context.options.checkpoint,
                                                              style_of(context)));
  switch (report->outcome) {
    case VerifyReport::Outcome::kProved:
      return kClean;
    case VerifyReport::Outcome::kBroken:
      return kFindings;
    case VerifyReport::Outcome::kUndecided:
      break;
  }
  return kUndecided;
}

int run_undo(Context& context) {
  auto undone = verbs::undo(context.options.checkpoint);
  if (!undone) return fail_with(context, undone.error());
  if (context.options.json) {
    print_answer(context, undone_to_json(context.options.checkpoint));
  } else {
    context.terminal.out("the .metadata from before the repair was restored\n");
  }
  return kClean;
}

}  // namespace shw::cli
