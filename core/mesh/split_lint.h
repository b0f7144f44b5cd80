// Predicts, before a save, how Megatron-FSDP splits the optimizer state of a gated weight that is a
// plain tensor. Needs only the split, no checkpoint.
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
    kHarmless,    // saved correctly
    kSilentLoss,  // silent loss: 1 of `ratio` rows is saved, all of W
    kOddRows,     // fails: the rows of a rank cannot be halved
    kReshape,     // fails: a row would have to be halved
    kBounds,      // fails: a rank's rows end after its claimed size
    kBoundary,    // fails: the last rank's rows end before its claimed size
  } outcome = Outcome::kHarmless;
  std::int64_t ratio = 1;  // kHarmless and kSilentLoss
  std::size_t rank = 0;    // the first FSDP rank that fails
  std::int64_t offset = 0, rows = 0,
               limit = 0;  // kBounds: offset + rows > limit; kBoundary: <
  std::int64_t odd = 0;    // kOddRows
  bool loses_rows_silently() const { return outcome == Outcome::kSilentLoss; }
};

// `rows`: rows of the item (W, then V, of one tensor-parallel rank) per FSDP rank, in rank order.
// kUsage if the numbers are not a split.
Result<SplitForecast> forecast_local_split(std::span<const std::int64_t> rows,
                                           std::int64_t tensor_parallel);

std::string_view name(SplitForecast::Outcome outcome);  // "silent", "odd-rows", ...
// Parses "4,8", the value of an option. kUsage if it is not a list of numbers.
Result<std::vector<std::int64_t>> parse_rows(std::string_view text);

// Formats as "silent: 1 row of 4 is saved, the others are lost without a message".
std::string to_text(const SplitForecast& forecast);

}  // namespace shw
