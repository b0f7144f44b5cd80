// Elements of one dtype as another, as torch's copy_ makes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/tensor/dtype.h"

namespace shw {

bool can_cast(Dtype from, Dtype to);
// `count` elements, the next one `source_stride` and `target_stride` bytes further; they may lie
// unaligned. can_cast() holds, and the dtypes differ.
void cast_row(Dtype from, const std::byte* source, std::int64_t source_stride, Dtype to,
              std::byte* target, std::int64_t target_stride, std::int64_t count);
// kUnsupported where there is no such cast: floating point to floating point only, or the same.
Result<std::vector<std::byte>> cast_elements(Dtype from, std::span<const std::byte> bytes,
                                             Dtype to);

}  // namespace shw
