// Compares copies of a tensor in files of single ranks with the first copy: in pieces, on all
// cores, divided among the ranks of a team.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/facts/check_input.h"
#include "core/facts/states/per_rank_masters.h"

namespace shw {

struct RankCopy {
  std::int64_t rank = 0;
  const RankTensors* file = nullptr;
  const TorchFileTensor* tensor = nullptr;
};

// Copies with values, of equal dtype and size.
using RankCopies = std::vector<RankCopy>;

struct CopyDivergence {
  std::int64_t elements = 0, differing = 0;
  std::int64_t far = 0;  // more than 1 % apart
  double largest = 0;
  std::array<std::int64_t, 5> histogram{};  // by distance in representable values (histogram_text)
  void join(const CopyDivergence& other);
};
// "12 by 1, 3 by 16 to 255 ULP"
std::string histogram_text(const CopyDivergence& seen);

struct ComparedCopies {
  bool is_read = true;                     // all copies were read completely
  std::vector<CopyDivergence> from_first;  // for each copy but the first
};

// One result per group, in order. Errors: cancellation, or a failure of the team.
Result<std::vector<ComparedCopies>> compare_copies(const CheckInput& input,
                                                   const std::vector<RankCopies>& groups);

}  // namespace shw
