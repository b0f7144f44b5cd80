// What an error message can mean: one supposition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/model/finding.h"

namespace shw {

struct Rule;

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
  std::string id;              // "H-L", or a word of its own; for programs: people read the title
  const Rule* rule = nullptr;  // null where none looks for it
  WrongSide wrong = WrongSide::kEither;
  // Before explain(): how likely alone, below 1. After: its share, by the numbers and names alone;
  // all shares and `none_of_these` add up to 1.
  double confidence = 0;
  std::size_t rank = 0;  // 1 is the likeliest; equal ranks are ties
  std::string title = {};
  std::string text = {};     // what it would mean
  std::string decide = {};   // what tells it from the others
  std::string command = {};  // the next thing to type
  std::vector<std::pair<std::string, EvidenceValue>> evidence = {};
};

}  // namespace shw
