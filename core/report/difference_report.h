// Differences of two checkpoints as JSON and text.
#pragma once

#include <string>

#include "core/compare/difference.h"
#include "core/model/checkpoint.h"
#include "core/report/listing.h"

namespace shw {

// Both paths as the user typed them.
struct ComparedPaths {
  std::string a, b;
};

// {"verdict": "same" | "different" | "undecided", "data", "a": {"checkpoint", "tensors"}, "b",
//  "in_both", "compared", "same", "counts": {kind: n},
//  "tensors": {fqn: {"kind", "a": {"dtype", "shape", "tiles"} | null, "b", ...}},
//  "entries": {fqn: {"kind"}}, "unjudged": [{"what", "needs"}], "doubts": [sentence]}
// Renamed tensors are listed twice: under the name in A with "to", in B with "from".
std::string difference_to_json(const CheckpointDifference& difference, const ComparedPaths& paths);

// The verdict, what was not compared, then the differences, largest first, with names that differ
// only in numbers grouped.
std::string difference_to_text(const CheckpointDifference& difference, const Checkpoint& a,
                               const Checkpoint& b, const ComparedPaths& paths,
                               const TextStyle& style);

}  // namespace shw
