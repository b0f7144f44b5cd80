// Fingerprint of the checkpoint that a plan was made for.
#pragma once

#include <string>
#include <string_view>

#include "core/model/checkpoint.h"

namespace shw {

// Hash of shapes, chunks and items, so that a plan is not applied to another checkpoint. Tensor
// bytes are not read.
std::string fingerprint(const Checkpoint& checkpoint);
// The fingerprint in a plan's JSON, of either kind of plan; empty if it is not a plan.
std::string fingerprint_in(std::string_view plan_json);

}  // namespace shw
