// Values of a slice of a tensor: a heat map, statistics, and a table of the first elements. Reads a
// bounded number of elements, so that a terabyte takes as long as a megabyte; the result states how
// many.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/verbs/values/slice_numbers.h"

namespace shw::verbs {

// "[17, 0:4096, 0:1280]", followed by " transposed" if set; nullopt if it cannot be parsed.
std::string to_text(const ValuesRequest& ask);
std::optional<ValuesRequest> parse_values_request(std::string_view text);

// `size` positions from `first` on, moved to be in an extent.
DimRange window_at(std::int64_t first, std::int64_t size, std::int64_t extent);
// The window of the table at an element of the slice.
ValuesRequest window_at(const SliceValues& slice, ExtentsView shape, ValuePlace place);

// The window of a slice, clipped to the tensor; reads nothing. kUsage if the tensor has no such
// slice.
Result<SliceValues> slice_window(const Checkpoint& checkpoint, TensorId tensor,
                                 const ValuesRequest& ask);
Result<SliceValues> slice_values(const Checkpoint& checkpoint, TensorId tensor,
                                 const ValuesRequest& ask, Progress* progress = nullptr);

// The same slice of another checkpoint, and the differences.
struct SideBySideValues {
  std::optional<SliceValues> values;
  std::optional<ValuesDifference> difference;
  std::string note;            // why there are no values, or how they were compared; may be empty
  std::optional<Error> error;  // may be kCancelled
};
SideBySideValues side_by_side_values(const Checkpoint& a, TensorId tensor, const Checkpoint& b,
                                     const SliceValues& values, Progress* progress = nullptr);

}  // namespace shw::verbs
