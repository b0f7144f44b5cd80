// From an error message to what it can mean: every hypothesis that the two shapes allow, exactly,
// the likeliest first (spec/failures.md 7). Nothing is opened and nothing is repaired: an
// explanation says what to look at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/explain/error_text.h"
#include "core/model/finding.h"

namespace shw {

// Ranks of the run that saved and of the one that loads.
struct Worlds {
  std::int64_t save = 0;
  std::int64_t load = 0;
};
Result<Worlds> parse_worlds(std::string_view text);  // "4:2"

// Where the mistake would be.
enum class WrongSide : std::uint8_t { kCheckpoint, kRequest, kBoth, kEither };
std::string_view name(WrongSide side);  // "checkpoint", "request", "both", "either"

struct Hypothesis {
  std::string id;         // "H-L": failures.md 7; for messages without shapes the id of their rule
  std::string rule = {};  // of the registry; empty where none looks for it
  WrongSide wrong = WrongSide::kEither;
  double confidence = 0;  // of 1; what the numbers and the names alone allow to say
  std::size_t rank = 0;   // 1 is the likeliest; equal ranks are ties
  std::string title = {};
  std::string text = {};     // what it would mean
  std::string decide = {};   // what tells it from the others
  std::string command = {};  // the next thing to type
  std::vector<std::pair<std::string, EvidenceValue>> evidence = {};
};

struct Explanation {
  ErrorText parsed;
  std::optional<Worlds> worlds;
  std::vector<Hypothesis> hypotheses;  // by rank
  std::string decide;                  // where the first ones are near each other; may be empty
};

Explanation explain(std::string_view text, std::optional<Worlds> worlds = std::nullopt);

}  // namespace shw
