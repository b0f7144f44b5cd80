// Elements of one dtype as another, as torch's copy_ makes them.
#pragma once

#include "core/base/result.h"
#include "core/io/source.h"
#include "core/tensor/dtype.h"

namespace shw {

bool can_cast(Dtype from, Dtype to);
// kUnsupported where there is no such cast: floating point to floating point only, or the same.
Result<Bytes> cast_elements(Dtype from, BytesView bytes, Dtype to);

}  // namespace shw
