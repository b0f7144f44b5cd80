#include "core/verbs/run/newest_step.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "core/base/encoder.h"
#include "core/base/letter_case.h"
#include "core/base/natural_order.h"
#include "core/base/words.h"
#include "core/facts/storage/filled.h"
#include "core/formats/folder_kind.h"
#include "core/formats/open.h"
#include "core/io/list_names.h"
#include "core/io/path_suffix.h"
#include "core/io/path_text.h"
#include "core/io/remote/open_remote.h"
#include "core/io/remote/remote_path.h"
#include "core/io/store.h"
#include "core/model/reachable.h"
#include "core/report/text.h"
#include "core/report/text_words.h"
#include "core/rules/check.h"

namespace shw::verbs {
namespace {

constexpr std::string_view kLatest = "@latest";
constexpr std::string_view kComplete = "@latest-complete";
constexpr std::string_view kFrom = "from:";

struct StepRequest {
  std::string run, below;  // "runs/llama", "/model"
  bool complete = false;
};

// Finds the first path part that is @latest or @latest-complete.
std::optional<StepRequest> parse_step_alias(std::string_view path) {
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part == kLatest || part == kComplete) {
      if (posix_store().exists(std::string(path.substr(0, end)))) return std::nullopt;
      StepRequest request;
      request.run = at == 0 ? "." : path.substr(0, at == 1 ? 1 : at - 1);
      request.below = path.substr(end);
      while (request.below.ends_with('/')) request.below.pop_back();
      request.complete = part == kComplete;
      return request;
    }
    at = end + 1;
  }
  return std::nullopt;
}

// "epoch=3-step=9000.ckpt" becomes "epoch=#-step=#.ckpt"; empty if no number ends the name.
std::string pattern_of(const std::string& name, bool is_file) {
  const std::size_t dot = is_file || name.ends_with(".ckpt") ? name.rfind('.') : name.npos;
  const std::size_t stem = std::min(dot, name.size());
  if (stem == 0 || !is_digit(name[stem - 1])) return {};
  std::string pattern;
  for (char c : name) {
    if (!is_digit(c))
      pattern += c;
    else if (!pattern.ends_with('#'))
      pattern += '#';
  }
  return pattern;
}

struct StepFolder {
  std::string name, pattern;
  bool contains_checkpoint = false;  // itself or in its subfolders
};

bool contains_checkpoint(const std::string& path) {
  auto directory = open_directory(path);
  if (!directory) return false;
  auto kind = kind_of_folder(*directory);
  return kind && (kind->format != nullptr || kind->below > 0);
}

// Step folders of the run, newest first.
Result<std::vector<StepFolder>> steps_of(const StepRequest& request, Progress* progress) {
  SHW_TRY(auto directory, open_directory(request.run));
  SHW_TRY(const std::vector<std::string> names, names_in(request.run));
  std::vector<StepFolder> steps;
  for (const std::string& name : names) {
    if (is_cancelled(progress)) return cancelled_error();
    if (name.starts_with('.') || name.find(kPartialMark) != name.npos) continue;
    const EntryKind kind = directory->stat(name).kind;
    const bool is_file = kind == EntryKind::kFile;
    if (is_file ? !is_file_of_checkpoint(name) || !request.below.empty()
                : kind != EntryKind::kDirectory)
      continue;
    StepFolder step{name, pattern_of(name, is_file)};
    if (step.pattern.empty()) continue;
    step.contains_checkpoint =
        is_file || contains_checkpoint(request.run + "/" + name + request.below);
    steps.push_back(std::move(step));
  }
  std::sort(steps.begin(), steps.end(),
            [](const StepFolder& a, const StepFolder& b) { return natural_less(b.name, a.name); });
  return steps;
}

// Drops results of repairs ("step_9000-repaired-2"); true if any was
// dropped.
bool drop_repaired_steps(const StepRequest& request, std::vector<StepFolder>& steps) {
  const std::size_t before = steps.size();
  std::erase_if(steps, [&](const StepFolder& step) {
    return posix_store().exists(request.run + "/" + step.name + request.below + "/" +
                                kCertificateFile);
  });
  return steps.size() != before;
}

Status keep_matching_steps(const StepRequest& request, std::vector<StepFolder>& steps) {
  std::set<std::string> patterns;
  std::vector<std::string> examples;
  for (const StepFolder& step : steps) {
    if (step.contains_checkpoint && patterns.insert(step.pattern).second)
      examples.push_back(step.name);
  }
  if (patterns.empty())
    return fail(ErrorKind::kUnsupported,
                steps.empty()
                    ? "holds no step: no name in it ends in a number"
                    : fmt::format("holds no step that is a checkpoint; checked {}",
                                  steps.size() == 1 ? steps.front().name
                                                    : fmt::format("{} to {}", steps.back().name,
                                                                  steps.front().name)),
                {request.run + request.below},
                "Give the folder that holds the steps, as in runs/llama/@latest.");
  if (patterns.size() > 1 && drop_repaired_steps(request, steps))
    return keep_matching_steps(request, steps);
  if (patterns.size() > 1)
    return fail(
        ErrorKind::kUnsupported,
        fmt::format(
            "holds steps with different name patterns, so the newest cannot be determined: {}",
            short_list_text(examples)),
        {request.run}, "Give the folder of one step.");
  std::erase_if(steps, [&](const StepFolder& step) { return !patterns.contains(step.pattern); });
  return {};
}

// Reason why the step is incomplete; empty if it is complete.
Result<std::string> incomplete_reason(const std::string& path, Progress* progress) {
  auto opened = open_checkpoint(path, progress);
  if (!opened) {
    if (opened.error().kind == ErrorKind::kCancelled)
      return tl::unexpected<Error>(std::move(opened).error());
    return opened.error().message;
  }
  CheckOptions options;
  options.depth = Depth::kMetadata;
  SHW_TRY(const CheckReport report, shw::check(**opened, options, progress));
  if (std::string words = unchecked_coverage_text(report); !words.empty()) return words;
  for (const Finding& finding : (*opened)->opening_findings()) {
    if (finding.severity == Severity::kError) return finding.rule + ": " + finding.cause;
  }
  if (has_unexamined_parts(report)) return std::string("not everything in it could be checked");
  if (auto all = check_all_reachable(**opened); !all) return all.error().message;
  return std::string();
}

std::string path_of_step(const StepRequest& request, const StepFolder& step) {
  const std::string folder =
      request.run == "." ? "" : request.run + (request.run == "/" ? "" : "/");
  return folder + step.name + request.below;
}

// Options that may contain such paths.
struct Typed {
  std::string *checkpoint, *against;
  std::string fill;  // after "from:"
  std::array<std::string*, 3> all() { return {checkpoint, against, &fill}; }
};

Typed paths_in_options(VerbOptions& verb_options) {
  return {&verb_options.checkpoint, &verb_options.against,
          verb_options.fill.starts_with(kFrom) ? verb_options.fill.substr(kFrom.size())
                                               : std::string()};
}

// A request is about what is there now, not about what an open checkpoint was listed with.
void forget_listing_of(const std::string& path) {
  const auto request = parse_step_alias(path);
  forget_listings(request ? request->run : path);
}

using ResolvedSteps = std::vector<NewestStep>;

Result<ResolvedSteps> resolve_own_step(const std::vector<std::string>& request,
                                       Progress* progress) {
  ResolvedSteps settled;
  for (const std::string& path : request) {
    SHW_TRY(NewestStep step, newest_step(path, progress));
    settled.push_back(std::move(step));
  }
  return settled;
}

Bytes packed(const Result<ResolvedSteps>& settled) {
  Encoder payload;
  payload.add(std::uint64_t{settled.has_value()});
  if (!settled) {
    payload.add(settled.error());
    return payload.take();
  }
  for (const NewestStep& step : *settled) {
    payload.add(std::string_view(step.asked));
    payload.add(std::string_view(step.path));
    payload.add(step.passed_over.size());
    for (const std::string& passed : step.passed_over) payload.add(std::string_view(passed));
  }
  return payload.take();
}

Result<ResolvedSteps> unpacked(BytesView bytes) {
  Decoder payload(bytes);
  SHW_TRY(const std::uint64_t is_settled, payload.number());
  if (is_settled == 0) {
    SHW_TRY(Error error, payload.error());
    return tl::unexpected<Error>(std::move(error));
  }
  ResolvedSteps settled;
  while (!payload.is_at_end()) {
    NewestStep step;
    SHW_TRY(step.asked, payload.text());
    SHW_TRY(step.path, payload.text());
    SHW_TRY(std::uint64_t count, payload.number());
    for (; count != 0; --count) {
      SHW_TRY(std::string passed, payload.text());
      step.passed_over.push_back(std::move(passed));
    }
    settled.push_back(std::move(step));
  }
  return settled;
}

}  // namespace

bool is_step_alias(std::string_view path) {
  return parse_step_alias(path).has_value();
}

Result<NewestStep> newest_step(const std::string& path, Progress* progress) {
  forget_listing_of(path);
  NewestStep newest{path, path, {}};
  const std::optional<StepRequest> request = parse_step_alias(path);
  if (!request) return newest;
  SHW_TRY(std::vector<StepFolder> steps, steps_of(*request, progress));
  SHW_CHECK(keep_matching_steps(*request, steps));
  for (const StepFolder& step : steps) {
    newest.path = path_of_step(*request, step);
    if (!request->complete) return newest;
    SHW_TRY(std::string lacks, incomplete_reason(newest.path, progress));
    if (lacks.empty()) return newest;
    newest.passed_over.push_back(step.name + ": " + lacks);
  }
  return fail(ErrorKind::kUnsupported,
              fmt::format("holds no complete step: {}", short_list_text(newest.passed_over)),
              {request->run}, "Run `shardwright check` on one of them for details.");
}

Result<std::vector<NewestStep>> resolve_newest_steps(VerbOptions& verb_options, Progress* progress,
                                                     Team* team) {
  Typed typed = paths_in_options(verb_options);
  for (const std::string* path : typed.all()) forget_listing_of(*path);
  forget_listing_of(verb_options.spec);
  std::vector<std::string> request;
  for (const std::string* path : typed.all()) {
    if (is_step_alias(*path)) request.push_back(*path);
  }
  if (request.empty()) return ResolvedSteps{};
  auto settle = [&]() -> Result<Bytes> { return packed(resolve_own_step(request, progress)); };
  SHW_TRY(const Bytes told,
          run_on_rank0_and_broadcast(team, "which step is the newest", settle, progress));
  SHW_TRY(ResolvedSteps settled, unpacked(told));
  for (std::string* path : typed.all()) {
    for (const NewestStep& step : settled) {
      if (*path != step.asked) continue;
      *path = step.path;
      break;
    }
  }
  if (!typed.fill.empty()) verb_options.fill = std::string(kFrom) + typed.fill;
  return settled;
}

std::string in_words(const NewestStep& step) {
  std::string text = printable(step.asked) + " is " + printable(step.path);
  if (step.passed_over.empty()) return text;
  text += "; skipped because incomplete:";
  for (const std::string& passed : step.passed_over) text += "\n  " + printable(passed);
  return text;
}

std::string resolved_path(const std::string& path) {
  if (path.empty() || is_step_alias(path)) return {};
  if (auto computed = parse_computed_suffix(path)) {
    auto resolve = [](std::string& part) {
      if (std::string resolved = resolved_path(part); !resolved.empty()) part = resolved;
    };
    resolve(computed->before);
    for (std::string& other : computed->others) resolve(other);
    return to_path(*computed);
  }
  if (is_remote(path)) return without_secrets(path);
  std::error_code failed;
  const auto resolved = std::filesystem::weakly_canonical(path, failed);
  return failed ? path : resolved.string();
}

}  // namespace shw::verbs
