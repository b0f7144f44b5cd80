#include "app/cli/final_errors.h"

#include "core/cluster/transport.h"
#include "core/report/report.h"

namespace shw::cli {
namespace {

// Prints a report to stderr.
void print_report(Context& context, const RankReport& report, const std::string& who) {
  Error error = *report.error;
  if (!who.empty()) {
    // A single rank's error shows its place as well.
    Error named = error;
    named.message = who + ": " + error.message;
    error.advice = with_places(std::move(named), context).advice;
  }
  const std::string text =
      report.text.empty() ? error_with_local_paths(context, error) : report.text;
  context.terminal.error(who.empty() ? text : who + ": " + text);
}

// Prints the JSON answer of a failed run.
void print_json_answer(Context& context, const RankReport& report, const std::string& who) {
  Error error = *report.error;
  if (!who.empty()) error.message = who + ": " + error.message;
  print_answer(context, report.text.empty() ? error_to_json(error) : report.text);
}

void print_groups(Context& context, const std::vector<std::optional<RankReport>>& by_rank) {
  // If rank 0 succeeded, stdout already has its answer.
  bool is_to_answer = context.options.json && by_rank.front() && by_rank.front()->error;
  for (const ErrorGroup& group : group_errors(by_rank)) {
    const std::string who = group.of_all ? std::string() : rank_list_text(group);
    if (is_to_answer)
      print_json_answer(context, group.report, who);
    else
      print_report(context, group.report, who);
    is_to_answer = false;
  }
}

}  // namespace

void report_final_errors(Context& context, MpiSession& session, const RankReport& own) {
  auto print = [&](const std::vector<std::optional<Bytes>>& received) {
    std::vector<std::optional<RankReport>> by_rank;
    for (const auto& bytes : received) {
      auto report = bytes ? decode_rank_report(*bytes) : Result<RankReport>(RankReport{});
      if (!report) report = RankReport{std::move(report).error()};
      by_rank.push_back(bytes ? std::optional(std::move(*report)) : std::nullopt);
    }
    print_groups(context, by_rank);
  };
  const bool is_confirmed = session.part(packed(own), own.error.has_value(), print);
  // A relayed error is printed by its origin.
  if (is_confirmed || !own.error || is_relayed_error(own.error->message)) return;
  print_report(context, own, "worker " + std::to_string(session.rank()));
}

}  // namespace shw::cli
