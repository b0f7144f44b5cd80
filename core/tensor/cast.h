// Casts between dtypes with the results of torch's copy_.
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
// True for floats of 16 to 64 bits, which need no separate scale factors.
bool is_plain_float(Dtype dtype);
// Casts `count` elements with strides in bytes; elements may be unaligned. Requires can_cast() and
// different dtypes. If `out_of_range` is not null, it holds one byte per element, which is set to 1
// where `to` cannot represent the value (is_out_of_range in convert.h).
void cast_row(Dtype from, const std::byte* source, std::int64_t source_stride, Dtype to,
              std::byte* target, std::int64_t target_stride, std::int64_t count,
              std::uint8_t* out_of_range = nullptr);
// True if no value of `from` is out of the range of `to`; it may be rounded. Requires can_cast().
bool can_represent(Dtype to, Dtype from);
// True if a cast to `to` and back gives every value of `from` again. Requires can_cast().
bool keeps_every_value(Dtype to, Dtype from);
// "what is beyond 448 becomes 448", for dtypes that cannot represent all values of another.
std::string out_of_range_text(Dtype to);
// Casts contiguous elements. kUnsupported unless both dtypes are floating point or equal.
// `out_of_range` as in cast_row().
Result<std::vector<std::byte>> cast_elements(Dtype from, std::span<const std::byte> bytes, Dtype to,
                                             std::uint8_t* out_of_range = nullptr);

}  // namespace shw
