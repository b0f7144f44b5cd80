#include "core/report/explanation.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/version.h"
#include "core/base/words.h"
#include "core/explain/message_kinds.h"
#include "core/report/check_members.h"
#include "core/report/json.h"
#include "core/report/text_words.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::size_t kShownMessages = 3;
constexpr std::size_t kShownOthers = 4;  // besides the most probable one; JSON has all
constexpr std::size_t kIndent = 4;
constexpr double kPossible = 0.2;  // least confidence of a cause that is called possible

std::string inked(const TextOptions& options, std::string_view code, const std::string& text) {
  return options.colour ? "\x1b[" + std::string(code) + "m" + text + "\x1b[0m" : text;
}

bool names_shapes(const ErrorMessage& message) {
  return message.kind->id == kShapes;
}

std::string id_with_spaces(std::string_view id) {
  std::string words(id);
  std::replace_if(
      words.begin(), words.end(), [](char c) { return c == '-' || c == '_'; }, ' ');
  return words;
}

std::string message_text(const ErrorMessage& message) {
  std::string out = names_shapes(message)
                        ? "saved " + to_text(ExtentsView(message.saved)) + "   current " +
                              to_text(ExtentsView(message.current))
                        : id_with_spaces(message.kind->id);
  for (const auto& [key, number] : message.numbers)
    out += fmt::format("   {} {}", id_with_spaces(key), number);
  if (!message.name.empty()) out += "   " + printable(message.name);
  if (!message.found.empty())
    out += fmt::format("   expected {}   found {}", printable(message.expected),
                       printable(message.found));
  if (!message.speaker.empty()) out += fmt::format("   ({})", message.speaker);
  return out;
}

std::string titled(const Hypothesis& one) {
  std::string_view side = fault_side_text(one.wrong);
  return printable(one.title) + (side.empty() ? "" : " (" + std::string(side) + ")");
}

std::size_t likeliest(const Explanation& explanation) {
  const auto& all = explanation.hypotheses;
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const Hypothesis& one) { return one.rank == 1; }));
}

void append_in_full(std::string& out, const Hypothesis& one, const TextOptions& options) {
  out += wrapped(printable(one.text), kIndent, options.width) + "\n";
  out += wrapped("What decides: " + printable(one.decide), kIndent, options.width) + "\n";
  out += std::string(kIndent, ' ') + inked(options, "1", one.command) + "\n";
  if (one.rule != nullptr)
    out += std::string(kIndent, ' ') + "More on it: shardwright explain " +
           std::string(one.rule->id) + "\n";
}

void append_in_short(std::string& out, const Hypothesis& one, const TextOptions& options) {
  out += wrapped("- " + std::string(likelihood_text(one.confidence)) + ": " + titled(one), 2,
                 options.width) +
         "\n";
  // A cause that may well be the right one says what to do too.
  if (one.confidence >= kPossible && !one.text.empty())
    out += wrapped(printable(one.text), kIndent, options.width) + "\n";
  out += wrapped("What decides: " + printable(one.decide), kIndent, options.width) + "\n";
}

void append_others(std::string& out, const Explanation& explanation, const TextOptions& options) {
  const auto& all = explanation.hypotheses;
  std::size_t first = likeliest(explanation);
  if (first == all.size()) return;
  out += "\nIt could also be\n";
  std::size_t end = std::min(all.size(), first + kShownOthers);
  for (std::size_t i = first; i < end; ++i) append_in_short(out, all[i], options);
  if (end != all.size())
    out += fmt::format("  \u2026 and {} more, less likely: --json\n", all.size() - end);
}

// What a check of the checkpoint finds. It comes first, because hypotheses know the message alone.
void append_findings(std::string& out, const CheckpointLookup& lookup, const TextOptions& options) {
  constexpr std::size_t kShown = 4;
  if (lookup.findings.empty()) return;
  out += inked(options, "1", "A check of the checkpoint finds") + "\n";
  const std::size_t shown = std::min(kShown, lookup.findings.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const Finding& one = lookup.findings[i];
    out += wrapped(fmt::format("- {} ({}): {}", one.rule, name(one.severity), printable(one.cause)),
                   2, options.width) +
           "\n";
  }
  if (shown != lookup.findings.size())
    out += fmt::format("  \u2026 and {} more: {}\n", lookup.findings.size() - shown,
                       lookup.check_command);
  out += "\nThe message alone says\n";
}

std::string check_result_text(const CheckpointLookup& lookup) {
  if (!lookup.checked)
    return "It was not checked, because it has many chunks: `" + lookup.check_command +
           "` does it.";
  if (lookup.is_undecided)
    return fmt::format("A check ({}) could not look at everything; `{}` says at what.",
                       name(*lookup.checked), lookup.check_command);
  if (!lookup.findings.empty()) return "";
  return fmt::format("A check has no finding (depth {}).", name(*lookup.checked));
}

// What the checkpoint has of the message's names: counts, and the first of each kind.
void append_lookup(std::string& out, const CheckpointLookup& lookup, const TextOptions& options) {
  constexpr std::size_t kShownNames = 6;
  out += "\nIn the checkpoint\n";
  auto add = [&](const std::string& text) {
    if (!text.empty()) out += wrapped("- " + printable(text), 2, options.width) + "\n";
  };
  if (lookup.unopened) {
    TextOptions one_line;
    one_line.width = std::string::npos;
    std::string why = error_to_text(*lookup.unopened, one_line);
    std::replace(why.begin(), why.end(), '\n', ' ');
    why.pop_back();
    add("It cannot be opened: " + why);
    return;
  }
  if (lookup.names.empty()) add("No name was looked up: the message names no tensor.");
  if (lookup.names.size() > 1)
    add(fmt::format("Of {} names {} are here, {} under another name, {} nowhere.",
                    lookup.names.size(), lookup.here, lookup.under_other_name, lookup.nowhere));
  for (std::size_t i = 0; i < std::min(kShownNames, lookup.names.size()); ++i)
    add(lookup.names[i].text);
  add(check_result_text(lookup));
}

Json json_of_lookup(const CheckpointLookup& lookup) {
  Json names = Json::array();
  for (const NameLookup& one : lookup.names) {
    Json json = {{"name", one.name}, {"found", name(one.found)}, {"text", one.text}};
    if (!one.stored.empty()) {
      json["stored"] = one.stored;
      json["shape"] = json_of(ExtentsView(one.shape));
    }
    names.push_back(std::move(json));
  }
  Json findings = Json::array();
  for (const Finding& one : lookup.findings)
    findings.push_back(
        {{"rule", one.rule}, {"severity", name(one.severity)}, {"cause", one.cause}});
  return {{"here", lookup.here},
          {"under_other_name", lookup.under_other_name},
          {"nowhere", lookup.nowhere},
          {"names", std::move(names)},
          {"checked", lookup.checked ? Json(name(*lookup.checked)) : Json()},
          {"undecided", lookup.is_undecided},
          {"findings", std::move(findings)},
          {"unopened", lookup.unopened ? Json(lookup.unopened->message) : Json()}};
}

double hundredths(double share) {
  return std::floor(share * 100 + 1e-9) / 100;
}

Json json_of_hypothesis(const Hypothesis& one) {
  return {{"id", one.id},
          {"rule", one.rule == nullptr ? Json() : Json(one.rule->id)},
          {"wrong", name(one.wrong)},
          {"rank", one.rank},
          {"confidence", hundredths(one.confidence)},
          {"title", one.title},
          {"text", one.text},
          {"evidence", json_of(one.evidence)},
          {"decide", one.decide},
          {"command", one.command}};
}

Json json_of_message(const ErrorMessage& message) {
  Json json = {{"form", message.kind->id},
               {"name", message.name.empty() ? Json() : Json(message.name)}};
  if (names_shapes(message)) {
    json["saved"] = json_of(ExtentsView(message.saved));
    json["current"] = json_of(ExtentsView(message.current));
  }
  if (!message.speaker.empty()) json["loader"] = message.speaker;
  if (!message.found.empty()) {
    json["expected"] = message.expected;
    json["found"] = message.found;
  }
  Json numbers = Json::object();
  for (const auto& [key, number] : message.numbers) numbers[std::string(key)] = number;
  if (!numbers.empty()) json["numbers"] = std::move(numbers);
  return json;
}

// Confidence that no hypothesis applies: 1 minus the listed confidences, each truncated to
// hundredths.
double none_of_these(const Explanation& explanation) {
  double sum = 0;
  for (const Hypothesis& one : explanation.hypotheses) sum += hundredths(one.confidence);
  return std::round((1 - sum) * 100) / 100;
}

}  // namespace

std::string parsed_message_text(const Explanation& explanation) {
  const auto& messages = explanation.parsed.messages;
  std::string out;
  std::size_t shown = std::min(messages.size(), kShownMessages);
  for (std::size_t i = 0; i < shown; ++i) out += "  " + message_text(messages[i]) + "\n";
  std::size_t more = messages.size() - shown + explanation.parsed.left_out;
  if (more != 0) out += "  \u2026 and " + human_count(more) + " more\n";
  if (explanation.worlds)
    out += "  saved by " + plural(static_cast<std::uint64_t>(explanation.worlds->save), "rank") +
           ", loaded by " + plural(static_cast<std::uint64_t>(explanation.worlds->load), "rank") +
           "\n";
  return out;
}

std::string_view fault_side_text(FaultSide side) {
  switch (side) {
    case FaultSide::kCheckpoint:
      return "then the checkpoint is at fault";
    case FaultSide::kRequest:
      return "then the loader is at fault, not the checkpoint";
    case FaultSide::kBoth:
      return "then both runs are at fault";
    case FaultSide::kEither:
      break;
  }
  return "";
}

std::string_view likelihood_text(double share) {
  if (share >= 0.5) return "likely";
  if (share >= kPossible) return "possible";
  return share >= 0.05 ? "less likely" : "unlikely";
}

std::string lead_of(const Explanation& explanation) {
  const auto& all = explanation.hypotheses;
  std::size_t first = likeliest(explanation);
  std::string lead = first > 1                  ? fmt::format("Equally likely, one of {}: ", first)
                     : all[0].confidence >= 0.5 ? "Most likely: "
                                                : "Perhaps: ";
  return lead + titled(all[0]);
}

std::string explanation_to_text(const Explanation& explanation, const TextOptions& options,
                                const CheckpointLookup* lookup) {
  std::string out;
  if (lookup != nullptr) append_findings(out, *lookup, options);
  if (explanation.hypotheses.empty()) {
    out += parsed_message_text(explanation) + "\n" +
           wrapped(
               "The two shapes are equal: this message is not what stopped the load. Paste the "
               "lines after it.",
               0, options.width) +
           "\n";
    if (lookup != nullptr) append_lookup(out, *lookup, options);
    return out;
  }
  out += inked(options, "1", wrapped(lead_of(explanation), 0, options.width)) + "\n";
  out += parsed_message_text(explanation) + "\n";
  std::size_t first = likeliest(explanation);
  for (std::size_t i = 0; i < first; ++i) {
    if (i != 0)
      out += "\n" + wrapped("or: " + titled(explanation.hypotheses[i]), 2, options.width) + "\n";
    append_in_full(out, explanation.hypotheses[i], options);
  }
  if (lookup != nullptr) append_lookup(out, *lookup, options);
  append_others(out, explanation, options);
  if (!explanation.decide.empty())
    out += "\n" + wrapped(explanation.decide, 0, options.width) + "\n";
  return out;
}

std::string explanation_to_json(const Explanation& explanation, const CheckpointLookup* lookup) {
  Json hypotheses = Json::array(), messages = Json::array();
  for (const Hypothesis& one : explanation.hypotheses)
    hypotheses.push_back(json_of_hypothesis(one));
  for (const ErrorMessage& message : explanation.parsed.messages)
    messages.push_back(json_of_message(message));
  Json world;
  if (explanation.worlds)
    world = {{"save", explanation.worlds->save}, {"load", explanation.worlds->load}};
  Json json = {{"schema", kJsonSchema},
               {"hypotheses", std::move(hypotheses)},
               {"none_of_these", none_of_these(explanation)},
               {"decide", explanation.decide.empty() ? Json() : Json(explanation.decide)},
               {"parsed",
                {{"messages", std::move(messages)},
                 {"left_out", explanation.parsed.left_out},
                 {"cut", explanation.parsed.cut},
                 {"world", std::move(world)}}}};
  if (lookup != nullptr) json["lookup"] = json_of_lookup(*lookup);
  return pretty_json_line(json);
}

std::string forecast_to_text(const SplitForecast& forecast, std::span<const std::int64_t> rows,
                             std::int64_t tensor_parallel, const TextOptions& options) {
  std::string split;
  for (std::int64_t count : rows) split += fmt::format("{}{}", split.empty() ? "" : " + ", count);
  std::string out = "rows " + split + " on " + plural(rows.size(), "FSDP rank") + ", " +
                    plural(static_cast<std::uint64_t>(tensor_parallel), "tensor-parallel rank") +
                    "\n" + inked(options, "1", to_text(forecast)) + "\n\n";
  std::string_view advice =
      forecast.loses_rows_silently()
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
  bool stops = forecast.outcome != Outcome::kHarmless && forecast.outcome != Outcome::kSilentLoss;
  Json json = {{"schema", kJsonSchema},
               {"rule", kGluSplitLocal.id},
               {"rows", json_of(ExtentsView(rows))},
               {"tensor_parallel", tensor_parallel},
               {"outcome", name(forecast.outcome)},
               {"loses", forecast.loses_rows_silently()},
               {"ratio", stops ? Json() : Json(forecast.ratio)},
               {"rank", stops ? Json(forecast.rank) : Json()},
               {"text", to_text(forecast)}};
  return pretty_json_line(json);
}

}  // namespace shw
