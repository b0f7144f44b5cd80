#include "core/report/explanation.h"

#include <algorithm>
#include <cmath>

#include "core/base/words.h"
#include "core/explain/message_kinds.h"
#include "core/report/json.h"
#include "core/report/text_words.h"

namespace shw {
namespace {

constexpr std::size_t kShownMessages = 4;

std::string inked(const TextOptions& options, std::string_view code, const std::string& text) {
  return options.colour ? "\x1b[" + std::string(code) + "m" + text + "\x1b[0m" : text;
}

std::string message_text(const ErrorMessage& message) {
  std::string name = message.name.empty() ? "" : "   " + printable(message.name);
  if (message.kind->id == kShapes)
    return "saved " + to_text(ExtentsView(message.saved)) + "   current " +
           to_text(ExtentsView(message.current)) + name;
  return std::string(message.kind->id) + name;
}

std::string header(const Explanation& explanation) {
  const auto& messages = explanation.parsed.messages;
  std::string out;
  std::size_t shown = std::min(messages.size(), kShownMessages);
  for (std::size_t i = 0; i < shown; ++i) out += message_text(messages[i]) + "\n";
  std::size_t more = messages.size() - shown + explanation.parsed.left_out;
  if (more != 0) out += "\u2026 and " + human_count(more) + " more\n";
  if (explanation.worlds)
    out += "saved by " + plural(static_cast<std::uint64_t>(explanation.worlds->save), "rank") +
           ", loaded by " + plural(static_cast<std::uint64_t>(explanation.worlds->load), "rank") +
           "\n";
  return out;
}

std::string percent(double confidence) {
  std::string digits = std::to_string(std::lround(confidence * 100));
  return std::string(digits.size() < 3 ? 3 - digits.size() : 0, ' ') + digits + " %";
}

void append(std::string& out, const Hypothesis& one, const TextOptions& options) {
  constexpr std::size_t kIndent = 4;
  std::string rank = std::to_string(one.rank) + ".";
  out += rank + std::string(kIndent - std::min(kIndent - 1, rank.size()), ' ') +
         inked(options, "1", one.title) + "\n";
  out += std::string(kIndent, ' ') + percent(one.confidence) + "   " + one.id;
  if (!one.rule.empty() && one.rule != one.id) out += ", " + one.rule;
  if (one.wrong != WrongSide::kEither)
    out += one.wrong == WrongSide::kCheckpoint ? "; the checkpoint is wrong"
           : one.wrong == WrongSide::kRequest  ? "; the loader is wrong, the checkpoint is good"
                                               : "; the checkpoint and the loader are wrong";
  out += "\n" + wrapped(printable(one.text), kIndent, options.width) + "\n";
  out += wrapped("What decides: " + printable(one.decide), kIndent, options.width) + "\n";
  out += std::string(kIndent, ' ') + inked(options, "1", one.command) + "\n\n";
}

Json json_of_hypothesis(const Hypothesis& one) {
  return {{"id", one.id},
          {"rule", one.rule.empty() ? Json() : Json(one.rule)},
          {"wrong", name(one.wrong)},
          {"rank", one.rank},
          {"confidence", std::round(one.confidence * 100) / 100},
          {"title", one.title},
          {"text", one.text},
          {"evidence", json_of(one.evidence)},
          {"decide", one.decide},
          {"command", one.command}};
}

Json json_of_message(const ErrorMessage& message) {
  Json json = {{"form", message.kind->id},
               {"name", message.name.empty() ? Json() : Json(message.name)}};
  if (message.kind->id == kShapes) {
    json["saved"] = json_of(ExtentsView(message.saved));
    json["current"] = json_of(ExtentsView(message.current));
  }
  return json;
}

}  // namespace

std::string explanation_to_text(const Explanation& explanation, const TextOptions& options) {
  std::string out = header(explanation) + "\n";
  for (const Hypothesis& one : explanation.hypotheses) append(out, one, options);
  if (explanation.hypotheses.empty())
    out += wrapped(
               "The two shapes are equal: this message is not what stopped the load. Paste "
               "the lines after it.",
               0, options.width) +
           "\n";
  if (!explanation.decide.empty()) out += wrapped(explanation.decide, 0, options.width) + "\n";
  return out;
}

std::string explanation_to_json(const Explanation& explanation) {
  Json hypotheses = Json::array(), messages = Json::array();
  for (const Hypothesis& one : explanation.hypotheses)
    hypotheses.push_back(json_of_hypothesis(one));
  for (const ErrorMessage& message : explanation.parsed.messages)
    messages.push_back(json_of_message(message));
  Json world;
  if (explanation.worlds)
    world = {{"save", explanation.worlds->save}, {"load", explanation.worlds->load}};
  Json json = {{"schema", kSchema},
               {"hypotheses", std::move(hypotheses)},
               {"decide", explanation.decide.empty() ? Json() : Json(explanation.decide)},
               {"parsed",
                {{"messages", std::move(messages)},
                 {"left_out", explanation.parsed.left_out},
                 {"cut", explanation.parsed.cut},
                 {"world", std::move(world)}}}};
  return dumped(json);
}

std::string forecast_to_text(const SplitForecast& forecast, std::span<const std::int64_t> rows,
                             std::int64_t tensor_parallel, const TextOptions& options) {
  std::string split;
  for (std::int64_t count : rows) split += (split.empty() ? "" : " + ") + std::to_string(count);
  std::string out = "rows " + split + " on " + plural(rows.size(), "FSDP rank") + ", " +
                    plural(static_cast<std::uint64_t>(tensor_parallel), "tensor-parallel rank") +
                    "\n" + inked(options, "1", to_text(forecast)) + "\n\n";
  std::string_view advice =
      forecast.is_loss()
          ? "This is for a saver that splits plain optimizer states by their own length "
            "(Megatron-LM #4423). Save with the fix, or with states that are DTensors."
      : forecast.outcome == SplitForecast::Outcome::kHarmless
          ? "Even a saver that splits plain optimizer states by their own length keeps all of "
            "them with this split."
          : "The save ends in an error and nothing is written; a split that is more even may lose "
            "rows without one.";
  return out + wrapped(std::string(advice), 0, options.width) + "\n";
}

std::string forecast_to_json(const SplitForecast& forecast, std::span<const std::int64_t> rows,
                             std::int64_t tensor_parallel) {
  using Outcome = SplitForecast::Outcome;
  bool stops = forecast.outcome != Outcome::kHarmless && forecast.outcome != Outcome::kSilent;
  Json json = {{"schema", kSchema},
               {"rule", "glu-split-local"},
               {"rows", json_of(ExtentsView(rows))},
               {"tensor_parallel", tensor_parallel},
               {"outcome", name(forecast.outcome)},
               {"loses", forecast.is_loss()},
               {"ratio", stops ? Json() : Json(forecast.ratio)},
               {"rank", stops ? Json(forecast.rank) : Json()},
               {"text", to_text(forecast)}};
  return dumped(json);
}

}  // namespace shw
