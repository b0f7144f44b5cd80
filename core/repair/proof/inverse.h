// The way back that certificates of before kept: a repair that moved bytes and lost none, run
// backwards, must give what hashed as the source's chunks did. Nobody writes it any more:
// fingerprints prove a move in one pass.
#pragma once

#include <string>
#include <vector>

#include "core/repair/proof/certificate.h"
#include "core/repair/proof/compare.h"

namespace shw {

// Empty where all old chunks come back from `tensor`; else why not. The map may come from a file.
Result<std::string> contradiction_of_inverse(const std::vector<InverseChunk>& inverse,
                                             TensorId tensor, const Checkpoint& result,
                                             Progress* progress);

}  // namespace shw
