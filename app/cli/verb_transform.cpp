// reshard, convert, plans of steps, and checkpoints computed from several: all write a new one.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "app/cli/verb_options.h"
#include "app/cli/verbs.h"
#include "core/base/words.h"
#include "core/io/store.h"
#include "core/repair/run/estimate_text.h"
#include "core/repair/run/in_place.h"
#include "core/report/listing.h"
#include "core/report/report.h"
#include "core/verbs/conversion.h"
#include "core/verbs/map_convert.h"
#include "core/verbs/round_trip.h"
#include "core/verbs/transforms.h"
#include "core/verbs/written_as.h"

namespace shw::cli {
namespace {

std::string forecast_text(const Forecast& forecast) {
  constexpr const char* kDoes[kStages] = {"reading", "making", "writing", "reading back"};
  std::string stages;
  for (std::size_t i = 0; i < kStages; ++i)
    stages +=
        fmt::format("{}{} {}", i == 0 ? "" : ", ", kDoes[i], human_seconds(forecast.seconds[i]));
  const auto rate = static_cast<std::uint64_t>(forecast.read_rate);
  const std::string assumption =
      rate == 0 ? std::string()
                : fmt::format(", if the disk writes as fast as it reads ({}/s)", human_bytes(rate));
  return fmt::format(
      "  about {}: {}; {} takes longest{}\n"
      "  at most {} of memory{}\n",
      human_seconds(forecast.total), stages, kDoes[static_cast<std::size_t>(forecast.longest)],
      assumption, human_bytes(forecast.memory),
      forecast.decoded_items == 0 ? std::string()
                                  : "; on the disk " + decoded_items_text(forecast));
}

std::string estimated_steps_text(const verbs::StepsEstimate& outlook) {
  std::string text;
  for (const std::string& step : outlook.steps) text += "  " + printable(step) + "\n";
  return text;
}

std::string summary_text_of(const verbs::StepsEstimate& outlook) {
  std::string text = estimated_steps_text(outlook), jobs;
  for (const auto& [what, count] : outlook.jobs)
    jobs += (jobs.empty() ? "" : ", ") + human_count(count) + " " + what;
  if (!jobs.empty())
    text += "  jobs: " + jobs + "; reads " + human_bytes(outlook.bytes_read) + "\n";
  for (const std::string& cast : outlook.out_of_range) text += "  " + cast + "\n";
  if (!outlook.of_other_ranks.empty())
    text += "  " + printable(left_out_entries_text(outlook.of_other_ranks)) + "\n";
  return text + "  " + plural(outlook.tensors, "tensor") + ", " +
         human_bytes(outlook.bytes_written) + " as " + outlook.format + ": " +
         human_count(outlook.tiles_made) + " tiles made, " + human_count(outlook.tiles_kept) +
         " kept as they are\n" + forecast_text(outlook.forecast);
}

// Shows the outlook and asks. The outlook is computed only if a user has to be asked.
Status confirm_write(Context& context, const verbs::Opened& opened, const Plan& plan,
                     const std::string& output) {
  if (context.options.yes) return {};
  if (context.team != nullptr) return confirmation_required_error();
  Terminal& terminal = context.terminal;
  const bool in_place = context.options.in_place;
  if (in_place) SHW_CHECK(check_in_place(*opened.checkpoint, plan));
  auto outlook = [&] {
    ProgressLine line(terminal, context.progress);
    return verbs::estimate_steps(opened, plan, context.options.memory, &context.progress);
  }();
  if (!outlook) return tl::unexpected<Error>(std::move(outlook).error());
  if (!terminal.interactive()) {
    return fail(ErrorKind::kUsage, "nothing was written: no terminal for a prompt, and no --yes",
                {}, "Repeat this with --yes.");
  }
  if (plan.repairs()) terminal.error(lost_to_text(*opened.checkpoint, plan));
  terminal.error(in_place ? estimated_steps_text(*outlook) : summary_text_of(*outlook));
  const std::string question = in_place ? "\nReplace .metadata in " +
                                              printable(context.options.checkpoint) +
                                              " (undo restores it)? [y/N] "
                                        : "\nWrite it into " + printable(output) + "? [y/N] ";
  if (terminal.ask(question)) return {};
  return fail(ErrorKind::kCancelled, "nothing was written");
}

std::string round_trip_text(const RepairResult& result) {
  if (!result.way_back) return {};
  const RoundTripResult& back = *result.way_back;
  std::string text = "  way back     " + plural(back.equal, "tensor") +
                     (back.equal == 1 ? " has" : " have") + " the source's fingerprint again";
  if (!back.differ.empty())
    text += "; " + plural(back.differ.size(), "tensor") +
            (back.differ.size() == 1 ? " differs: " : " differ: ") + short_list_text(back.differ);
  if (!back.padding.empty())
    text += "; " + plural(back.padding.size(), "tensor") +
            " except for padding rows, which were removed: " + short_list_text(back.padding);
  if (!back.without.empty())
    text += "; " + plural(back.without.size(), "tensor") + " of the source" +
            (back.without.size() == 1 ? " is" : " are") +
            " missing from the result: " + short_list_text(back.without);
  if (back.as_settings != 0)
    text += "; steps of " + plural(back.as_settings, "parameter") +
            " are one setting of the optimizer, with the same number";
  if (back.left_out != 0) {
    text += "; " + plural(back.left_out, "tensor") + (back.left_out == 1 ? " was" : " were") +
            " left out " + (back.left_out_why.empty() ? "by an option" : "and not compared:");
  }
  text = printable(text) + "\n";
  for (const std::string& why : back.left_out_why)
    text += "               " + printable(why) + "\n";
  return text;
}

void print_written(Context& context, const RepairResult& result,
                   const std::vector<Finding>& remaining) {
  if (context.options.json) {
    print_answer(context, repair_to_json(result, remaining, &context.progress));
    return;
  }
  TextStyle style = style_of(context);
  for (const Finding& finding : remaining)
    context.terminal.out_line(inked(style, Ink::kGold, finding.rule) + "  " +
                              printable(finding.cause));
  context.terminal.out_line(
      inked(style, result.lossless ? Ink::kGreen : Ink::kGold,
            "written, and proved against the source") +
      ", " + (context.options.verb == "extract" ? "as it was computed" : result_loss_text(result)) +
      "\n" + out_of_range_to_text(result) + damage_to_text(result) + other_ranks_to_text(result) +
      left_out_to_text(result) + round_trip_text(result) + uploaded_to_text(result) +
      "  checkpoint   " + printable(result.output) + "\n  certificate  " +
      printable(result.certificate));
  context.terminal.say(stage_rates_text(context.progress) +
                       next_steps_text(result.output, context.options.in_place));
}

}  // namespace

int run_steps(Context& context, const verbs::Opened& opened, const Plan& plan,
              const std::string& suffix) {
  const Options& options = context.options;
  if (auto sound =
          verbs::refuse_damaged_checkpoint(verbs::unrepaired_reasons_in(plan), options.checkpoint);
      !sound)
    return fail_with(context, sound.error());
  ApplyOptions wanted{options.out, options.in_place};
  wanted.suffix = suffix;
  wanted.checkpoint = options.checkpoint;
  wanted.memory = options.memory;
  wanted.device = device_options(context);
  wanted.team = context.team;
  wanted.integrity = options.integrity;
  auto output = output_of(posix_store(), *opened.checkpoint, wanted);
  if (!output) return fail_with(context, output.error());
  if (auto free = check_upload(context); !free) return fail_with(context, free.error());
  if (auto agreed = confirm_write(context, opened, plan, *output); !agreed)
    return fail_with(context, agreed.error());
  auto result = [&] {
    ProgressLine line(context.terminal, context.progress);
    return verbs::repair(opened, plan, wanted, &context.progress);
  }();
  if (!result) return fail_with(context, result.error());
  print_device_use(context, result->device);
  print_traffic(context, result->traffic);
  if (!options.mapping.config.empty() && plan.format == "safetensors") {
    auto copied = verbs::copy_model_files(options.mapping, result->output);
    if (!copied) return fail_with(context, copied.error());
  }
  verbs::Opened bare = opened;
  bare.mesh.reset();
  bare.spec.reset();
  auto remaining = [&] {
    ProgressLine line(context.terminal, context.progress);
    return verbs::findings_of_result(bare, result->output, options.depth, &context.progress,
                                     context.team);
  }();
  if (!remaining) return fail_with(context, remaining.error());
  if (options.round_trip) {
    auto back = [&] {
      ProgressLine line(context.terminal, context.progress);
      return verbs::check_round_trip(opened, options, options.mapping, plan.steps, result->output,
                                     &context.progress, context.team);
    }();
    if (!back) return fail_with(context, back.error());
    result->way_back = std::move(*back);
  }
  if (auto sent = upload_result(context, *result); !sent) return fail_with(context, sent.error());
  print_written(context, *result, *remaining);
  const int code = exit_code_of_result(context, *opened.checkpoint, *remaining);
  if (code != kClean || !result->way_back) return code;
  const RoundTripResult& back = *result->way_back;
  if (!back.differ.empty()) return kFindings;
  // If all names differ, nothing was compared.
  if (back.equal + back.padding.size() == 0) return kUndecided;
  return back.without.empty() ? kClean : kFindings;
}

int print_steps_plan(Context& context, const verbs::Opened& opened, const Plan& plan) {
  if (auto sound = verbs::refuse_damaged_checkpoint(verbs::unrepaired_reasons_in(plan),
                                                    context.options.checkpoint);
      !sound)
    return fail_with(context, sound.error());
  auto outlook = [&] {
    ProgressLine line(context.terminal, context.progress);
    return verbs::estimate_steps(opened, plan, context.options.memory, &context.progress);
  }();
  if (!outlook) return fail_with(context, outlook.error());
  if (context.options.json) {
    context.terminal.out_line(verbs::estimate_to_json(*opened.checkpoint, plan, *outlook));
  } else {
    context.terminal.out(summary_text_of(*outlook));
    context.terminal.say("\nNothing was written. To run it:  " +
                         command_line("repair", context.options));
  }
  return plan.undecided.empty() ? kClean : kFindings;
}

namespace {

// Applies the steps, unless findings must be repaired first.
int write_result(Context& context, const verbs::Opened& opened, const Plan& plan,
                 const std::string& suffix) {
  auto wrong = [&] {
    ProgressLine line(context.terminal, context.progress);
    return verbs::findings_to_repair_first(opened, context.options.depth, &context.progress,
                                           context.team);
  }();
  if (!wrong) return fail_with(context, wrong.error());
  if (auto sound = verbs::refuse_damaged_checkpoint(*wrong, context.options.checkpoint); !sound)
    return fail_with(context, sound.error());
  return run_steps(context, opened, plan, suffix);
}

}  // namespace

int run_reshard(Context& context) {
  auto opened = open_all(context);
  if (!opened) return fail_with(context, opened.error());
  std::vector<std::string> notes;
  auto plan = verbs::plan_reshard(*opened, context.options, &notes);
  if (!plan) return fail_with(context, plan.error());
  for (const std::string& note : notes) context.terminal.say(printable(note));
  return write_result(context, *opened, *plan, "-resharded");
}

namespace {

int convert_with_options(Context& context, const VerbOptions& said, const std::string& suffix) {
  const Options& options = context.options;
  auto opened = open_all(context);
  if (!opened) return fail_with(context, opened.error());
  auto made = verbs::plan_conversion(*opened, said, options.mapping, &context.progress);
  if (!made) return fail_with(context, made.error());
  if (made->is_empty) {
    context.terminal.say("Nothing was written: no entry matches \"" + printable(said.only) + "\".");
    return kFindings;  // like ls and grep: nothing was found
  }
  for (const std::string& note : made->notes) context.terminal.say(printable(note));
  if (options.verb == "extract")
    context.terminal.say(printable(verbs::extraction_note(*opened->checkpoint)));
  return write_result(context, *opened, made->plan, suffix);
}

}  // namespace

int run_convert(Context& context) {
  const Options& options = context.options;
  if (options.to.empty() && options.mapping.map.empty())
    return fail_with(context, Error{ErrorKind::kUsage,
                                    "convert needs --to or --map",
                                    {},
                                    "write --to safetensors, or --to hf to change names as well"});
  VerbOptions said = options;
  // A map that is given may have other programs, which the conversion checks.
  if (options.mapping.map.empty()) {
    auto target = verbs::convert_target(options.to);
    if (!target) return fail_with(context, std::move(target).error());
    said.to = std::move(*target);
  }
  said.only = options.subject;
  return convert_with_options(context, said, "-" + (said.to.empty() ? "mapped" : said.to));
}

namespace {

// Checks the inputs after the first one, which is checked as the source of the result.
Result<bool> check_further_inputs(Context& context) {
  auto warnings = [&] {
    ProgressLine line(context.terminal, context.progress);
    return verbs::check_other_inputs(context.options.checkpoint, context.options.depth,
                                     &context.progress);
  }();
  if (!warnings) return tl::unexpected<Error>(std::move(warnings).error());
  for (const std::string& warning : *warnings)
    context.terminal.say("warning  " + printable(warning));
  return warnings->empty();
}

}  // namespace

int run_combine(Context& context) {
  const Options& options = context.options;
  auto is_clean = check_further_inputs(context);
  if (!is_clean) return fail_with(context, is_clean.error());
  VerbOptions said = options;
  auto own = verbs::source_format_or_safetensors(options.checkpoint, &context.progress);
  if (!own) return fail_with(context, own.error());
  const bool is_small = options.verb == "delta" || options.verb == "extract";
  if (said.to.empty()) said.to = is_small ? "safetensors" : *own;
  said.weights_only = said.weights_only || options.verb == "average";
  const int code =
      convert_with_options(context, said, verbs::suffix_of_result(options.checkpoint, said.to));
  return code == kClean && !*is_clean ? kFindings : code;
}

}  // namespace shw::cli
