// Helpers of several tests of explain: messages, random numbers, and a table.
#pragma once

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/explain/explain.h"
#include "core/explain/message_kinds.h"

namespace shw::test {

inline std::string sentence(const Extents& saved, const Extents& current, const std::string& fqn) {
  return "Size mismatch between saved torch.Size(" + to_text(ExtentsView(saved)) +
         ") and current: torch.Size(" + to_text(ExtentsView(current)) + ") for " + fqn;
}

// Deterministic on every platform, unlike std::uniform_int_distribution.
struct Dice {
  std::mt19937_64 engine{20260921};
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine() % n); }
};

// The likeliest hypothesis, as "H-L both"; empty if there is none.
inline std::string first(const Explanation& explanation) {
  if (explanation.hypotheses.empty()) return "";
  const Hypothesis& one = explanation.hypotheses.front();
  return one.id + " " + std::string(name(one.wrong));
}

// The kind of the first message; empty if none is known.
inline std::string form_of(const std::string& text) {
  const ErrorText parsed = parse_error_text(text);
  return parsed.messages.empty() ? "" : std::string(parsed.messages[0].kind->id);
}

struct MessageCase {
  std::string text;
  std::string form, first;  // kind of the message, id of the likeliest hypothesis
  std::string name = {};
  std::vector<std::pair<std::string, std::int64_t>> numbers = {};
};

inline void check_cases(const std::vector<MessageCase>& cases) {
  for (const MessageCase& test : cases) {
    CAPTURE(test.text);
    Explanation explanation = explain("Traceback:\n  noise 1, 2\n" + test.text + "\n");
    REQUIRE_FALSE(explanation.parsed.messages.empty());
    const ErrorMessage& message = explanation.parsed.messages[0];
    CHECK(std::string(message.kind->id) == test.form);
    CHECK(message.name == test.name);
    REQUIRE_FALSE(explanation.hypotheses.empty());
    CHECK(explanation.hypotheses[0].id == test.first);
    std::vector<std::pair<std::string, std::int64_t>> numbers(message.numbers.begin(),
                                                              message.numbers.end());
    CHECK(numbers == test.numbers);
  }
}

// A message with its loader, its kind and its most likely cause.
struct Sentence {
  std::string text, loader, form, first;
};

inline void check_sentences(const std::vector<Sentence>& sentences) {
  for (const Sentence& sentence : sentences) {
    CAPTURE(sentence.text);
    Explanation explanation = explain(sentence.text);
    REQUIRE_FALSE(explanation.parsed.messages.empty());
    const MessageKind& kind = *explanation.parsed.messages[0].kind;
    CHECK(std::string(kind.id) == sentence.form);
    CHECK(std::string(kind.loader) == sentence.loader);
    REQUIRE_FALSE(explanation.hypotheses.empty());
    const Hypothesis& likeliest = explanation.hypotheses[0];
    CHECK(likeliest.id == sentence.first);
    CHECK_FALSE(likeliest.decide.empty());
    CHECK(likeliest.command.rfind("shardwright ", 0) == 0);
  }
}

struct TwoShapes {
  std::string text, loader;
  Extents saved, current;
};

inline void check_two_shapes(const std::vector<TwoShapes>& sentences) {
  for (const TwoShapes& sentence : sentences) {
    CAPTURE(sentence.text);
    ErrorText parsed = parse_error_text(sentence.text);
    REQUIRE(parsed.messages.size() == 1);
    CHECK(parsed.messages[0].kind->id == kShapes);
    CHECK(std::string(parsed.messages[0].kind->loader) == sentence.loader);
    CHECK(parsed.messages[0].saved == sentence.saved);
    CHECK(parsed.messages[0].current == sentence.current);
  }
}

}  // namespace shw::test
