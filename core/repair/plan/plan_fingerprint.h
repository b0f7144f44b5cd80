// Which checkpoint a plan was made for.
#pragma once

#include <string>
#include <string_view>

#include "core/model/checkpoint.h"

namespace shw {

// Shapes, chunks and items, so that a plan meets no other checkpoint. Bytes of tensors are not
// looked at.
std::string fingerprint(const Checkpoint& checkpoint);
// The one that a plan was made for, of either kind; empty where it is no plan.
std::string fingerprint_in(std::string_view plan_json);

}  // namespace shw
