#include <fmt/core.h>

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "app/cli/verbs.h"
#include "core/base/spelling.h"
#include "core/explain/checkpoint_lookup.h"
#include "core/explain/explain.h"
#include "core/explain/message_kinds.h"
#include "core/explain/unknown_text.h"
#include "core/io/remote/remote_path.h"
#include "core/report/answers.h"
#include "core/report/explanation.h"
#include "core/rules/rules.h"

namespace shw::cli {
namespace {

std::vector<std::string_view> rule_ids() {
  std::vector<std::string_view> ids;
  for (const Rule& rule : all_rules()) ids.push_back(rule.id);
  return ids;
}

int list_rules(Context& context) {
  TextStyle style = style_of(context);
  std::size_t width = 0;
  for (const Rule& rule : all_rules()) width = std::max(width, rule.id.size());
  std::string text;
  for (const Rule& rule : all_rules()) {
    // On a second line if the title is too long for the terminal.
    const auto columns = static_cast<std::size_t>(style.must_fit ? style.width : 1'000);
    text += inked(style, Ink::kBold, rule.id) + std::string(width - rule.id.size() + 2, ' ') +
            wrapped(std::string(rule.title), width + 2, columns).substr(width + 2) + "\n";
  }
  context.terminal.out(text);
  return kClean;
}

// Reads up to one byte more than is parsed; errors are at the end of long texts.
Result<std::string> text_from_stdin() {
  std::string text;
  std::array<char, 65536> buffer{};
  for (;;) {
    ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(ErrorKind::kIo, "stdin cannot be read", {}, "");
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > 4 * kMaxErrorText) text.erase(0, text.size() - kMaxErrorText - 1);
  }
}

// True if a file or pipe has data on stdin within a second, so that `explain < log` and `... |
// explain` work without "-". An idle open pipe is not waited for.
bool is_text_on_stdin() {
  struct stat status = {};
  if (::fstat(STDIN_FILENO, &status) != 0) return false;
  if (S_ISREG(status.st_mode)) return status.st_size > 0;
  if (!S_ISFIFO(status.st_mode)) return false;
  pollfd waited{STDIN_FILENO, POLLIN, 0};
  return ::poll(&waited, 1, 1000) == 1 && (waited.revents & POLLIN) != 0;
}

// "coverage-gab": a mistyped rule rather than an error message.
bool resembles_rule_id(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || c == '-' || c == '_'; });
}

int refuse_rule(Context& context, const std::string& id) {
  std::string advice = did_you_mean_text(did_you_mean(id, rule_ids()));
  if (advice.empty()) advice = "`shardwright explain` lists the rules.";
  return fail_with(context, {ErrorKind::kUsage, "unknown rule \"" + id + "\"", {}, advice});
}

// A few known messages as examples, the most general group's first.
std::string known_messages(bool json) {
  constexpr std::size_t kShown = 8;
  const std::vector<MessageGroup>& groups = message_groups();
  std::string text;
  auto add = [&](const MessageGroup& group) {
    text += (json ? " | " : "\n  ") + std::string(group.kinds.front().example);
  };
  add(groups.back());
  for (std::size_t i = 0; i + 1 < std::min(kShown, groups.size()); ++i) add(groups[i]);
  return text;
}

int refuse_text(Context& context, const std::string& text) {
  bool json = context.options.json;
  const MessageKind* nearest = nearest_kind(text);
  std::string message = "this message is not known, so no cause can be given";
  if (nearest != nullptr)
    message += "; the most similar known one is \"" + std::string(nearest->example) + "\"";
  std::string advice =
      next_step_for(text) + fmt::format(
                                " Or paste the whole traceback, in quotes or through a pipe "
                                "(`explain -`). {} kinds of messages are known, such as{}",
                                message_kinds().size(), known_messages(json));
  if (json) return fail_with(context, {ErrorKind::kUnsupported, message, {}, advice});
  context.terminal.error(message + ".\n" + advice);
  return kUndecided;
}

int print_rule_lesson(Context& context, const Rule& rule) {
  print_answer(context, context.options.json ? rule_to_json(rule)
                                             : rule_to_text(rule, text_options(context)));
  return kClean;
}

Result<std::optional<WorldSizes>> world_sizes_from_options(const Options& options) {
  if (options.world.empty()) return std::optional<WorldSizes>();
  SHW_TRY(WorldSizes worlds, parse_world_sizes(options.world));
  return std::optional<WorldSizes>(worlds);
}

// Checks what takes little time: no headers over a network, nothing of millions of chunks.
Status add_findings(Context& context, const std::shared_ptr<const Checkpoint>& checkpoint,
                    CheckpointLookup& lookup) {
  constexpr std::uint32_t kMaxChunks = 200'000;
  if (checkpoint->chunk_count() > kMaxChunks) return {};
  verbs::Opened opened;
  opened.checkpoint = checkpoint;
  const Depth depth = is_remote(context.options.checkpoint) ? Depth::kMetadata : Depth::kHeaders;
  lookup.checked = depth;
  auto checked = verbs::check(opened, depth, &context.progress);
  if (!checked && checked.error().kind == ErrorKind::kCancelled)
    return tl::unexpected<Error>(std::move(checked).error());
  lookup.is_undecided = true;  // an error hides no explanation
  if (!checked) return {};
  CheckReport& report = *checked;
  lookup.is_undecided = report.verdict == Verdict::kUndecided;
  for (Finding& finding : report.findings) {
    if (finding.severity != Severity::kInfo) lookup.findings.push_back(std::move(finding));
  }
  return {};
}

Result<CheckpointLookup> look_up_names_in_checkpoint(Context& context, const ErrorText& parsed) {
  CheckpointLookup lookup;
  auto checkpoint = open(context);
  if (!checkpoint) {
    if (checkpoint.error().kind == ErrorKind::kCancelled)
      return tl::unexpected<Error>(std::move(checkpoint).error());
    lookup.unopened = std::move(checkpoint).error();
    lookup.check_command = command_line("check", context.options);
    return lookup;
  }
  lookup = look_up(parsed, **checkpoint);
  lookup.check_command = command_line("check", context.options);
  SHW_CHECK(add_findings(context, *checkpoint, lookup));
  return lookup;
}

int explain_text(Context& context, const std::string& text) {
  auto worlds = world_sizes_from_options(context.options);
  if (!worlds) return fail_with(context, worlds.error());
  Explanation explanation = explain(text, *worlds);
  if (explanation.parsed.messages.empty()) {
    const int code = refuse_text(context, text);
    if (!context.options.checkpoint.empty() && !context.options.json)
      context.terminal.error("What the checkpoint shows:  " +
                             command_line("check", context.options));
    return code;
  }
  std::optional<CheckpointLookup> lookup;
  if (!context.options.checkpoint.empty()) {
    auto found = look_up_names_in_checkpoint(context, explanation.parsed);
    if (!found) return fail_with(context, found.error());
    lookup = std::move(*found);
    add_lookup_result(*lookup, explanation);
    substitute_checkpoint_path(explanation, context.options.checkpoint);
  }
  const CheckpointLookup* found = lookup ? &*lookup : nullptr;
  print_answer(context, context.options.json
                            ? explanation_to_json(explanation, found)
                            : explanation_to_text(explanation, text_options(context), found));
  return lookup && lookup->unopened ? kUndecided : kClean;
}

// Predicts what a defective saver makes of a split, without a checkpoint.
int predict_local_split(Context& context) {
  const Options& options = context.options;
  if (options.subject != kGluSplitLocal.id)
    return fail_with(context, {ErrorKind::kUsage,
                               "--rows is only for glu-split-local",
                               {},
                               "shardwright explain glu-split-local --rows 4,8 --tp 2"});
  auto rows = parse_rows(options.rows);
  if (!rows) return fail_with(context, rows.error());
  auto forecast = forecast_local_split(*rows, options.tensor_parallel);
  if (!forecast) return fail_with(context, forecast.error());
  print_answer(context, options.json ? forecast_to_json(*forecast, *rows, options.tensor_parallel)
                                     : forecast_to_text(*forecast, *rows, options.tensor_parallel,
                                                        text_options(context)));
  return kClean;
}

}  // namespace

int run_explain(Context& context) {
  if (!context.options.rows.empty()) return predict_local_split(context);
  std::string subject = text_without_secrets(context.options.subject);
  if (subject.empty() && is_text_on_stdin()) subject = "-";
  if (subject.empty() && context.options.json) {
    print_answer(context, rules_to_json());
    return kClean;
  }
  if (subject.empty()) return list_rules(context);
  if (const Rule* rule = find_rule(subject)) return print_rule_lesson(context, *rule);
  bool known =
      !parse_error_text(subject).messages.empty();  // single words such as "headertoolarge"
  if (subject != "-" && !known && resembles_rule_id(subject)) return refuse_rule(context, subject);
  if (subject != "-") return explain_text(context, subject);
  auto text = text_from_stdin();
  if (!text) return fail_with(context, text.error());
  return explain_text(context, text_without_secrets(std::move(*text)));
}

}  // namespace shw::cli
