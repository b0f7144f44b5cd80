#include "app/cli/last_words.h"

#include "core/cluster/transport.h"
#include "core/report/report.h"

namespace shw::cli {
namespace {

// As it is to be read on stderr.
void say_words(Context& context, const LastWords& words, const std::string& who) {
  Error error = *words.error;
  if (!who.empty()) {
    // The place of one that is named here alone is told as well.
    Error named = error;
    named.message = who + ": " + error.message;
    error.advice = with_places(std::move(named), context).advice;
  }
  const std::string text = words.text.empty() ? error_words(context, error) : words.text;
  context.terminal.error(who.empty() ? text : who + ": " + text);
}

// The answer of a run that failed.
void answer(Context& context, const LastWords& words, const std::string& who) {
  Error error = *words.error;
  if (!who.empty()) error.message = who + ": " + error.message;
  context.terminal.out_line(words.text.empty() ? error_to_json(error) : words.text);
}

void say_all(Context& context, const std::vector<std::optional<LastWords>>& by_rank) {
  // Where the first one has its answer stdout is full.
  bool is_to_answer = context.options.json && by_rank.front() && by_rank.front()->error;
  for (const Saying& saying : sayings(by_rank)) {
    const std::string who = saying.of_all ? std::string() : who_says(saying);
    if (is_to_answer)
      answer(context, saying.words, who);
    else
      say_words(context, saying.words, who);
    is_to_answer = false;
  }
}

}  // namespace

void say_last_words(Context& context, MpiSession& session, const LastWords& own) {
  auto say = [&](const std::vector<std::optional<Bytes>>& told) {
    std::vector<std::optional<LastWords>> by_rank;
    for (const auto& bytes : told) {
      auto words = bytes ? unpacked_words(*bytes) : Result<LastWords>(LastWords{});
      if (!words) words = LastWords{std::move(words).error()};
      by_rank.push_back(bytes ? std::optional(std::move(*words)) : std::nullopt);
    }
    say_all(context, by_rank);
  };
  const bool is_heard = session.part(packed(own), own.error.has_value(), say);
  // What it was told is said already.
  if (is_heard || !own.error || is_of_another(own.error->message)) return;
  say_words(context, own, "worker " + std::to_string(session.rank()));
}

}  // namespace shw::cli
