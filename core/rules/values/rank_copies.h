// Copies of one tensor in files of single ranks, held against the first of them: in pieces, on
// every core, dealt out to the members of a team.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/facts/check_input.h"
#include "core/facts/states/side_masters.h"

namespace shw {

struct RankCopy {
  std::int64_t rank = 0;
  const RankTensors* file = nullptr;
  const SideTensor* tensor = nullptr;
};

// Of one dtype that has values, and of one size.
using RankCopies = std::vector<RankCopy>;

struct CopyDivergence {
  std::int64_t elements = 0, differing = 0;
  std::int64_t far = 0;  // more than 1 % apart
  double largest = 0;
  std::array<std::int64_t, 5> histogram{};  // by the steps between them (histogram_text)
  void join(const CopyDivergence& other);
};
// "12 by 1, 3 by 16 to 255 ULP"
std::string histogram_text(const CopyDivergence& seen);

struct ComparedCopies {
  bool is_read = true;                     // to the end, all of them
  std::vector<CopyDivergence> from_first;  // of each but the first
};

// By group. An error only where somebody stopped it, or where the team broke.
Result<std::vector<ComparedCopies>> compare_copies(const CheckInput& input,
                                                   const std::vector<RankCopies>& groups);

}  // namespace shw
