// Hashes of tensors as JSON and text.
#pragma once

#include <string>

#include "core/compare/tensor_hashes.h"

namespace shw {

// {"tensors": {fqn: {"dtype", "shape", "hash"}}, "total"}. Hashes are null if unreadable, with
// "error" in the tensor; "unread" is present only if there are any.
std::string hashes_to_json(const HashedTensors& hashed);

// "HASH  FQN  bfloat16 [4096, 4096]", one independent line per tensor, suitable for diff(1); dashes
// and the reason if unreadable. The last line is the total.
std::string hashes_to_text(const HashedTensors& hashed);

}  // namespace shw
