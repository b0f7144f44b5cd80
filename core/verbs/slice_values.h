// What the numbers of a slice of a tensor are: a heat map, what they are like together, and a table
// of the first of them. Read box by box with a bound, so that a look at a terabyte takes as long as
// one at a megabyte; what was looked at is said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/verbs/slice_numbers.h"

namespace shw::verbs {

// "[17, 0:4096, 0:1280]", with " transposed" behind it; nothing where it cannot be read.
std::string to_text(const ValuesAsk& ask);
std::optional<ValuesAsk> parse_values_ask(std::string_view text);

// The window of a slice, clipped to the tensor; nothing is read. kUsage where the tensor has no
// such slice.
Result<SliceValues> slice_window(const Checkpoint& checkpoint, TensorId tensor,
                                 const ValuesAsk& ask);
Result<SliceValues> slice_values(const Checkpoint& checkpoint, TensorId tensor,
                                 const ValuesAsk& ask, Progress* progress = nullptr);

// The same slice of another checkpoint, and what differs.
struct SideBySideValues {
  std::optional<SliceValues> values;
  std::optional<ValuesDifference> difference;
  std::string note;            // why there is none, or how they were compared; may be empty
  std::optional<Error> error;  // kCancelled too
};
SideBySideValues side_by_side_values(const Checkpoint& a, TensorId tensor, const Checkpoint& b,
                                     const SliceValues& values, Progress* progress = nullptr);

}  // namespace shw::verbs
