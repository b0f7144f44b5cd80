// Hashes of tensors, for programs and for people.
#pragma once

#include <string>

#include "core/compare/tensor_hashes.h"

namespace shw {

// {"tensors": {fqn: {"dtype", "shape", "hash"}}, "total"}: null where there is none, with "error"
// of the tensor; and "unread" only where there are any.
std::string hashes_to_json(const HashedTensors& hashed);

// A line a tensor, "HASH  FQN  bfloat16 [4096, 4096]", that depends on no other line, so that
// diff(1) shows what differs; dashes and why where there is none. Last of all their total.
std::string hashes_to_text(const HashedTensors& hashed);

}  // namespace shw
