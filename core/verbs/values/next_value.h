// Finds the next NaN of a slice, or the next element that differs from another checkpoint. Reads
// the slice in bands, from a place to the end and on from the beginning.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"
#include "core/verbs/values/slice_numbers.h"

namespace shw::verbs {

enum class SearchedValue : std::uint8_t { kNan, kDifference };

struct NextValue {
  std::optional<ValuePlace> place;  // nullopt: none in the whole slice
  std::int64_t unread = 0;          // elements that could not be read on the way
};

// `slice`: of which the whole extent of the shown dimensions is searched, in reading order from
// `start`, which may be one past the end of a row. `reference`: for kDifference; may be null.
Result<NextValue> next_value(const Checkpoint& checkpoint, TensorId tensor,
                             const SliceValues& slice, ValuePlace start, SearchedValue sought,
                             const Checkpoint* reference, Progress* progress = nullptr);

}  // namespace shw::verbs
