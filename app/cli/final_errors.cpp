#include "app/cli/final_errors.h"

#include "core/cluster/transport.h"
#include "core/report/report.h"

namespace shw::cli {
namespace {

// Prints a report to stderr.
void say_words(Context& context, const RankReport& report, const std::string& who) {
  Error error = *report.error;
  if (!who.empty()) {
    // A single rank's error shows its place as well.
    Error named = error;
    named.message = who + ": " + error.message;
    error.advice = with_places(std::move(named), context).advice;
  }
  const std::string text = report.text.empty() ? error_words(context, error) : report.text;
  context.terminal.error(who.empty() ? text : who + ": " + text);
}

// Prints the JSON answer of a failed run.
void answer(Context& context, const RankReport& report, const std::string& who) {
  Error error = *report.error;
  if (!who.empty()) error.message = who + ": " + error.message;
  context.terminal.out_line(report.text.empty() ? error_to_json(error) : report.text);
}

void say_all(Context& context, const std::vector<std::optional<RankReport>>& by_rank) {
  // If rank 0 succeeded, stdout already has its answer.
  bool is_to_answer = context.options.json && by_rank.front() && by_rank.front()->error;
  for (const ErrorGroup& saying : group_errors(by_rank)) {
    const std::string who = saying.of_all ? std::string() : rank_list_text(saying);
    if (is_to_answer)
      answer(context, saying.report, who);
    else
      say_words(context, saying.report, who);
    is_to_answer = false;
  }
}

}  // namespace

void report_final_errors(Context& context, MpiSession& session, const RankReport& own) {
  auto say = [&](const std::vector<std::optional<Bytes>>& told) {
    std::vector<std::optional<RankReport>> by_rank;
    for (const auto& bytes : told) {
      auto report = bytes ? decode_rank_report(*bytes) : Result<RankReport>(RankReport{});
      if (!report) report = RankReport{std::move(report).error()};
      by_rank.push_back(bytes ? std::optional(std::move(*report)) : std::nullopt);
    }
    say_all(context, by_rank);
  };
  const bool is_heard = session.part(packed(own), own.error.has_value(), say);
  // A relayed error is printed by its origin.
  if (is_heard || !own.error || is_relayed_error(own.error->message)) return;
  say_words(context, own, "worker " + std::to_string(session.rank()));
}

}  // namespace shw::cli
