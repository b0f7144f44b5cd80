// The elements of a box of a tensor, from whatever chunks hold them: local or remote, decoded or
// computed.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw::verbs {

// Row-major, little-endian, as stored. kUsage if the box is not inside the tensor or `out` has
// another size; kDamaged if some of its elements are in no chunk; and the errors of reading.
Status read_elements(const Checkpoint& checkpoint, TensorId tensor, const Box& box,
                     std::span<std::byte> out, Progress* progress = nullptr);

}  // namespace shw::verbs
