// A repair that moves bytes and loses none, run backwards: what was written, mapped back, must hash
// to what the source held. The map is in the certificate, so that `verify` can do it again without
// the source.
#pragma once

#include <string>
#include <vector>

#include "core/repair/certificate.h"
#include "core/repair/compare.h"

namespace shw {

// Where every element of the tensor's old chunks has gone, with the hashes of the source's
// elements. Empty for a tensor that loses elements, that keeps all its items, or whose map is too
// long to be worth keeping (more than 100,000 pieces).
Result<std::vector<InverseChunk>> inverse_of(const PlannedTensor& planned, const Checkpoint& source,
                                             Progress* progress);

// Empty where all old chunks come back from `tensor`; else why not. The map may come from a file.
Result<std::string> contradiction_of_inverse(const std::vector<InverseChunk>& inverse,
                                             TensorId tensor, const Checkpoint& result,
                                             Progress* progress);

}  // namespace shw
