// One possible cause of an error message.
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

// World sizes of the saving and the loading run.
struct Worlds {
  std::int64_t save = 0;
  std::int64_t load = 0;
};
Result<Worlds> parse_worlds(std::string_view text);  // "4:2"

// The side with the mistake.
enum class WrongSide : std::uint8_t { kCheckpoint, kRequest, kBoth, kEither };
std::string_view name(WrongSide side);  // "checkpoint", "request", "both", "either"

struct Hypothesis {
  std::string id;              // stable id, for programs
  const Rule* rule = nullptr;  // the rule that detects it; may be null
  WrongSide wrong = WrongSide::kEither;
  // Before explain(): likelihood alone, below 1. After: probability by shapes and names; all
  // probabilities and `none_of_these` add up to 1.
  double confidence = 0;
  std::size_t rank = 0;  // 1 is the most likely; ties share a rank
  std::string title = {};
  std::string text = {};     // the meaning
  std::string decide = {};   // what distinguishes it from others
  std::string command = {};  // the next command
  std::vector<std::pair<std::string, EvidenceValue>> evidence = {};
};

}  // namespace shw
