// Which checkpoint a plan was made for.
#pragma once

#include <string>

#include "core/model/checkpoint.h"

namespace shw {

// Shapes, chunks and items, so that a plan meets no other checkpoint. Bytes of tensors are not
// looked at.
std::string fingerprint(const Checkpoint& checkpoint);

}  // namespace shw
