// Steps and error handling shared by several verbs.
#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "app/cli/run_on_remote_host.h"
#include "app/cli/verbs.h"
#include "core/base/words.h"
#include "core/facts/storage/filled.h"
#include "core/formats/open.h"
#include "core/io/remote/bucket_upload.h"
#include "core/io/remote/remote_path.h"
#include "core/io/store.h"
#include "core/report/answers.h"
#include "core/report/listing.h"
#include "core/report/report.h"
#include "core/verbs/computed_path.h"
#include "core/verbs/ignored_rules.h"
#include "core/verbs/run/newest_step.h"
#include "gpu/cuda_executor.h"

namespace shw::cli {

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return kUsage;
    case ErrorKind::kNotFound:
      return kFindings;
    case ErrorKind::kIo:
      return kIo;
    case ErrorKind::kDamaged:
    case ErrorKind::kUnsupported:
    case ErrorKind::kCancelled:
      return kUndecided;
  }
  return kUndecided;
}

Error with_checkpoint_path(Error error, const Options& options) {
  // The path is still an alias of a step that was not resolved.
  if (verbs::is_step_alias(options.checkpoint)) return error;
  std::string& file = error.place.file;
  // The output folder, or its parent.
  bool of_output = !options.out.empty() && (file.starts_with(options.out) ||
                                            options.out.starts_with(file + "/") || file == ".");
  bool as_typed = of_output || file.empty() || is_remote(file) || file.front() == '/' ||
                  file == options.spec || file == options.plan || file == options.baseline ||
                  file == options.policy || file == options.placements ||
                  file.starts_with(options.checkpoint) ||
                  (!options.against.empty() && file.starts_with(options.against)) ||
                  (options.fill.starts_with(kFillFrom) && file.starts_with(fill_source(options)));
  if (as_typed || options.checkpoint.empty()) return error;
  if (options.checkpoint.ends_with("/" + file)) {  // the single file that was opened
    file = options.checkpoint;
    return error;
  }
  std::string folder = options.checkpoint;
  if (folder.ends_with("/.metadata")) folder.resize(folder.size() - 10);
  if (!folder.ends_with('/')) folder += '/';
  // A plan may name files of other checkpoints, which are not inside this folder.
  const Store& store = posix_store();
  if (file.find('/') != file.npos && store.exists(file) && !store.exists(folder + file))
    return error;
  file = folder + file;
  return error;
}

namespace {

// Exits without destructors: outputs are already in order, no output is
// buffered, and destroying a checkpoint of 250,000 tensors would take 0.1
// s.
[[noreturn]] void exit_without_cleanup(int code) {
  std::_Exit(code);
}

}  // namespace

// The named worker may run on any machine.
Error with_places(Error error, const Context& context) {
  const std::string words = error.message.substr(0, error.message.find(" (when last heard"));
  for (std::size_t i = 0; i < context.workers.size(); ++i) {
    const std::string name = "worker " + std::to_string(i);
    std::size_t end = 0;
    bool is_named = false;
    for (std::size_t at = 0; (at = words.find(name, at)) != std::string::npos; at = end) {
      end = at + name.size();
      is_named = is_named || end == words.size() || words[end] < '0' || words[end] > '9';
    }
    const std::string place = name + " is " + context.workers[i];
    if (!is_named || error.advice.find(place) != std::string::npos) continue;
    if (!error.advice.empty()) error.advice += "; ";
    error.advice += place;
  }
  return error;
}

namespace {

// Number of zeros that replace lost elements in a result.
std::int64_t count_zero_filled_elements(const std::vector<Finding>& remaining) {
  FilledTensor filled;
  filled.fill = "zero";
  const std::string filled_with_zeros = replacement_text(filled);
  std::int64_t zeros = 0;
  for (const Finding& finding : remaining) {
    if (!verbs::is_filled_elements_finding(finding)) continue;
    const Extents* lost = nullptr;
    const std::vector<std::string>* fills = nullptr;
    for (const auto& [key, value] : finding.evidence) {
      if (key == "lost_elements") lost = std::get_if<Extents>(&value);
      if (key == "filled_with") fills = std::get_if<std::vector<std::string>>(&value);
    }
    if (lost == nullptr || fills == nullptr) continue;
    for (std::size_t i = 0; i < std::min(fills->size(), lost->size()); ++i)
      zeros += (*fills)[i] == filled_with_zeros ? (*lost)[i] : 0;
  }
  return zeros;
}

}  // namespace

int exit_code_of_result(Context& context, const Checkpoint& source,
                        const std::vector<Finding>& remaining) {
  if (!std::all_of(remaining.begin(), remaining.end(), verbs::is_filled_elements_finding))
    return kFindings;
  const std::int64_t zeros = count_zero_filled_elements(remaining);
  if (context.options.fill.empty() || zeros == 0) return kClean;
  double all = 0;
  for (TensorId tensor : source.tensors())
    all += static_cast<double>(volume(source.shape(tensor)).value_or(0));
  const double percent = all > 0 ? 100 * static_cast<double>(zeros) / all : 0;
  context.terminal.say(fmt::format(
      "{} of the checkpoint, {} %, {} zero now: the trained values are lost. {}",
      plural(static_cast<std::uint64_t>(zeros), "element"),
      percent >= 0.01 ? fmt::format("{:.2f}", percent) : fmt::format("{:.1g}", percent),
      zeros == 1 ? "is" : "are",
      context.options.accept_loss ? "The loss was accepted." : "--accept-loss makes that exit 0."));
  return context.options.accept_loss ? kClean : kFindings;
}

int fail_with(Context& context, const Error& met) {
  const int signal = context.stopped_by == nullptr ? 0 : context.stopped_by->load();
  const bool is_interrupted = met.kind == ErrorKind::kCancelled && signal == SIGINT;
  return fail_with_code(context, met, is_interrupted ? 128 + SIGINT : exit_code(met.kind));
}

namespace {

std::optional<Severity> lowest_failing_severity(const std::string& fail_on) {
  if (fail_on == "never") return std::nullopt;
  if (fail_on == "info") return Severity::kInfo;
  return fail_on == "error" ? Severity::kError : Severity::kWarning;
}

// The current folder, from which shardwright.toml is read; empty inside the checkpoint's folder,
// because a checkpoint must not silence findings about itself.
std::string configuration_folder(const std::string& checkpoint) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::path current = fs::current_path(failed);
  fs::path folder = fs::weakly_canonical(checkpoint, failed);
  if (failed) return {};
  if (!fs::is_directory(folder, failed)) folder = folder.parent_path();
  const bool is_inside =
      std::mismatch(folder.begin(), folder.end(), current.begin(), current.end()).first ==
      folder.end();
  return is_inside ? std::string() : current.string();
}

}  // namespace

std::string with_origin_of(const Context& context, std::string json) {
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - context.began;
  std::string path = verbs::resolved_path(context.options.checkpoint);
  const char* machine = std::getenv(kReachedAs);
  if (machine != nullptr && path.starts_with('/')) path.insert(0, machine);
  return with_answer_header(std::move(json), {std::move(path), context.format, took.count()});
}

void print_answer(Context& context, std::string text) {
  if (context.options.json) text = with_origin_of(context, std::move(text));
  // With several checkpoints, answers are collected and printed as one list.
  if (context.options.json && context.answers != nullptr)
    context.answers->push_back(std::move(text));
  else
    context.terminal.out_line(text);
}

Result<std::vector<std::string>> rules_to_ignore(const Options& options) {
  return verbs::ignored_rules(options.ignored, configuration_folder(options.checkpoint));
}

int exit_code_of_check(const CheckReport& report, const verbs::CheckRequest& asked,
                       const std::string& fail_on) {
  // Findings are certain, so they decide the exit code even if something else was undecided.
  if (verbs::must_fail_check(report, asked, lowest_failing_severity(fail_on))) return kFindings;
  if (report.verdict == Verdict::kUndecided) return kUndecided;
  return verbs::is_open(report, asked) ? kUndecided : kClean;
}

int fail_with_code(Context& context, const Error& met, int code) {
  const Error error = with_places(met, context);
  if (context.team != nullptr) {
    // Other ranks wait for this one unless all fail alike.
    context.team->stop(error);
    context.deferred_error = error;
    return code;
  }
  if (context.options.json)
    print_answer(context, error_to_json(error));
  else
    context.terminal.error(error_with_local_paths(context, error));
  if (error.kind == ErrorKind::kCancelled)
    exit_without_cleanup(context.terminal.out_failed() ? kIo : code);
  return code;
}

std::string error_with_local_paths(const Context& context, const Error& error) {
  return error_to_text(with_checkpoint_path(error, context.options), text_options(context));
}

Status confirmation_required_error() {
  return fail(ErrorKind::kUsage,
              "nothing was written: with several processes there is no prompt, so --yes is needed",
              {}, "Review the plan with `shardwright plan`, then run this again with --yes.");
}

TextStyle style_of(const Context& context) {
  return {context.terminal.colour(), context.terminal.utf8(), context.terminal.width(),
          context.terminal.millions(), context.terminal.must_fit()};
}

TextOptions text_options(const Context& context) {
  TextOptions options;
  options.colour = context.terminal.colour();
  options.width = static_cast<std::size_t>(std::clamp(context.terminal.width(), 40, 100));
  options.checkpoint = context.options.checkpoint;
  options.spec = context.options.spec;
  options.mesh = context.options.mesh;
  options.against = context.options.against;
  options.depth = context.options.depth;
  return options;
}

Result<std::shared_ptr<const Checkpoint>> open(Context& context) {
  ProgressLine line(context.terminal, context.progress);
  auto opened = verbs::open_requested(context.options.checkpoint, &context.progress);
  if (opened) context.format = (*opened)->format().name;
  return opened;
}

Result<verbs::Opened> open_all(Context& context) {
  ProgressLine line(context.terminal, context.progress);
  auto opened = verbs::open(context.options, &context.progress);
  if (opened) context.format = opened->checkpoint->format().name;
  if (opened) opened->mapping = context.options.mapping;
  return opened;
}

Result<CheckReport> check_opened(Context& context, const verbs::Opened& opened,
                                 CountedChunks* counted) {
  ProgressLine line(context.terminal, context.progress);
  return verbs::check(opened, context.options.depth, &context.progress, context.team, counted);
}

std::string next_steps_text(const std::string& output, bool in_place) {
  const std::string word = shell_word(output);
  return "Prove it:  shardwright verify " + word +
         (in_place ? "\nTake it back:  shardwright undo " + word : "");
}

std::string stage_rates_text(const Progress& progress) {
  constexpr const char* kDid[kStages] = {"read", "made", "wrote", "read back"};
  constexpr const char* kDoes[kStages] = {"reading", "making", "writing", "reading back"};
  std::string text;
  for (std::size_t i = 0; i < kStages; ++i) {
    const StageUsage& work = progress.stages[i];
    if (work.nanoseconds == 0) continue;
    double seconds = static_cast<double>(work.nanoseconds) * 1e-9;
    auto rate = static_cast<std::uint64_t>(static_cast<double>(work.bytes) / seconds);
    text += (text.empty() ? "A thread " : ", ") + std::string(kDid[i]) + " " +
            human_bytes(work.bytes) + " at " + human_bytes(rate) + "/s";
  }
  if (text.empty()) return text;
  return text + ": " + kDoes[static_cast<std::size_t>(longest(progress.stages))] +
         " took longest.\n";
}

DeviceOptions device_options(const Context& context) {
  DeviceOptions device = context.options.device;
  device.gpus = cuda_gpus;
  device.local_rank = context.local_rank;
  return device;
}

void print_device_use(Context& context, const DeviceUse& use, const char* done) {
  if (!use.failed.empty()) {
    context.terminal.say("The GPU failed, and the CPU continued: " + printable(use.failed));
  } else if (use.device != "cpu" || context.options.device.kind != DeviceKind::kAuto) {
    context.terminal.say(
        fmt::format("Elements were {} on {}: {}.", done, use.device, printable(use.why)));
  }
  const auto longest = slowest(use.works);
  if (!longest) return;
  std::string rates;
  for (std::size_t i = 0; i < kDeviceStages; ++i) {
    const DeviceWork& work = use.works[i];
    rates +=
        fmt::format("{}{} {:.1f} GB/s", i == 0 ? "" : ", ", name(static_cast<DeviceStage>(i)),
                    work.seconds > 0 ? static_cast<double>(work.bytes) / work.seconds / 1e9 : 0);
  }
  context.terminal.say(fmt::format("On the GPU: {}; {} took longest.", rates, name(*longest)));
}

void print_traffic(Context& context, const TeamTraffic& traffic) {
  if (traffic.by.empty() || context.options.transport == TileTransport::kAuto) return;
  context.terminal.say(fmt::format("Between processes {} travelled by {}: {}.",
                                   human_bytes(traffic.bytes),
                                   traffic.by == "nccl" ? "NCCL" : "MPI", traffic.why));
}

void print_reused_work(Context& context, const RepairResult& result) {
  if (result.files_kept == 0) return;
  context.terminal.say("Resumed an interrupted run: " + plural(result.files_kept, "file") +
                       " had already been finished.");
}

Status check_upload(const Context& context) {
  const Options& options = context.options;
  if (options.upload.empty()) return {};
  if (options.in_place)
    return fail(ErrorKind::kUsage, "--upload and --in-place cannot be combined", {},
                "Only a result in a new folder can be uploaded.");
  return check_upload_target(options.upload);
}

Result<UploadResult> upload_or_resume_folder(Context& context, const std::string& folder,
                                             const std::string& target) {
  SHW_TRY(auto directory, open_directory(folder));
  ProgressLine line(context.terminal, context.progress);
  auto sent = upload_folder(*directory, target, &context.progress);
  if (!sent && (sent.error().kind == ErrorKind::kIo || sent.error().kind == ErrorKind::kCancelled))
    sent.error().advice += (sent.error().advice.empty() ? "" : " ") +
                           ("`shardwright upload " + printable(folder) + " " +
                            printable(without_secrets(target)) + "` uploads the missing files.");
  if (!sent) return tl::unexpected<Error>(sent.error());
  return UploadResult{without_secrets(target), sent->files, sent->bytes, sent->kept};
}

Status upload_result(Context& context, RepairResult& result) {
  const std::string& target = context.options.upload;
  if (target.empty() || (context.team != nullptr && context.team->rank() != 0)) return {};
  auto sent = upload_or_resume_folder(context, result.output, target);
  if (!sent) {
    sent.error().message += " (the result is complete in " + result.output + ")";
    return tl::unexpected<Error>(std::move(sent.error()));
  }
  result.sent = std::move(*sent);
  return {};
}

std::string uploaded_to_text(const RepairResult& result) {
  if (!result.sent) return {};
  return "  uploaded     " + printable(result.sent->to) + " (" +
         plural(result.sent->files, "file") + ", " + human_bytes(result.sent->bytes) + ")\n";
}

}  // namespace shw::cli
