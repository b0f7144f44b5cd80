// Before a save: what Megatron-FSDP's splitter makes of a gated weight's optimizer state where that
// is a plain tensor (S2, spec/failures.md 3.a and F2.4). Needs the split alone, no checkpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace shw {

struct SplitForecast {
  enum class Outcome : std::uint8_t {
    kHarmless,  // saved as it should be
    kSilent,    // saved without a message; 1 row of `ratio` is there, all of them rows of W
    kOddRows,   // stops: a rank's rows cannot be halved
    kReshape,   // stops: half a row would have to be cut
    kBounds,    // stops: a rank's rows end behind the size that it claims
    kBoundary,  // stops: the last rank's rows end before the size that it claims
  } outcome = Outcome::kHarmless;
  std::int64_t ratio = 1;  // of kHarmless and kSilent
  std::size_t rank = 0;    // of those that stop: the first FSDP rank where they do
  std::int64_t offset = 0, rows = 0,
               limit = 0;  // of kBounds: offset + rows > limit; of kBoundary: <
  std::int64_t odd = 0;    // of kOddRows
  bool is_loss() const { return outcome == Outcome::kSilent; }
};

// `rows`: how many rows of the item (W, then V, of one tensor-parallel rank) each FSDP rank owns,
// in rank order. kUsage where that is no split.
Result<SplitForecast> forecast_local_split(std::span<const std::int64_t> rows,
                                           std::int64_t tensor_parallel);

std::string_view name(SplitForecast::Outcome outcome);  // "silent", "odd-rows", ...
// "4,8": what a person types for `rows`. kUsage where it is no list of numbers.
Result<std::vector<std::int64_t>> parse_rows(std::string_view text);

// "silent: 1 row of 4 is saved, the others are lost without a message".
std::string to_text(const SplitForecast& forecast);

}  // namespace shw
