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
struct WorldSizes {
  std::int64_t save = 0;
  std::int64_t load = 0;
};
Result<WorldSizes> parse_world_sizes(std::string_view text);  // "4:2"

// The side with the mistake.
enum class FaultSide : std::uint8_t { kCheckpoint, kRequest, kBoth, kEither };
std::string_view name(FaultSide side);  // "checkpoint", "request", "both", "either"

struct Hypothesis {
  std::string id;              // stable id, for programs
  const Rule* rule = nullptr;  // the rule that detects it; may be null
  FaultSide wrong = FaultSide::kEither;
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
