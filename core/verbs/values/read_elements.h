// Reads the elements of a box of a tensor from the chunks that have them: local or remote, decoded
// or computed.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw::verbs {

// The result is row-major, little-endian, in the stored dtype. kUsage if the box is outside the
// tensor or `out` has another size; kDamaged if elements are in no chunk; also errors of reading.
Status read_elements(const Checkpoint& checkpoint, TensorId tensor, const Box& box,
                     std::span<std::byte> out, Progress* progress = nullptr);

}  // namespace shw::verbs
