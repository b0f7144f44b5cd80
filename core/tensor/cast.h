// Elements of one dtype as another, as torch's copy_ makes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/tensor/dtype.h"

namespace shw {

bool can_cast(Dtype from, Dtype to);
// `count` elements, the next one `source_stride` and `target_stride` bytes further; they may lie
// unaligned. can_cast() holds, and the dtypes differ. Of `out_of_range`, a byte an element, those
// become 1 whose number `to` cannot say (is_out_of_range in convert.h); null: nobody asks.
void cast_row(Dtype from, const std::byte* source, std::int64_t source_stride, Dtype to,
              std::byte* target, std::int64_t target_stride, std::int64_t count,
              std::uint8_t* out_of_range = nullptr);
// Whether no number of `from` is out of range in `to`. can_cast() holds.
bool holds_all_of(Dtype to, Dtype from);
// "what is beyond 448 becomes 448". It does not hold all of some other dtype.
std::string out_of_range_in_words(Dtype to);
// kUnsupported where there is no such cast: floating point to floating point only, or the same.
// `out_of_range` as in cast_row().
Result<std::vector<std::byte>> cast_elements(Dtype from, std::span<const std::byte> bytes, Dtype to,
                                             std::uint8_t* out_of_range = nullptr);

}  // namespace shw
