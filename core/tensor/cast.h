// Elements of one dtype as another, as torch's copy_ makes them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/tensor/dtype.h"

namespace shw {

bool can_cast(Dtype from, Dtype to);
// kUnsupported where there is no such cast: floating point to floating point only, or the same.
Result<std::vector<std::byte>> cast_elements(Dtype from, std::span<const std::byte> bytes,
                                             Dtype to);

}  // namespace shw
