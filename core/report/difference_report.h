// How two checkpoints differ, for programs and for people.
#pragma once

#include <string>

#include "core/compare/difference.h"
#include "core/model/checkpoint.h"
#include "core/report/listing.h"

namespace shw {

// Where the two lie, as the person wrote it.
struct ComparedPaths {
  std::string a, b;
};

// {"verdict": "same" | "different" | "undecided", "data", "a": {"checkpoint", "tensors"}, "b",
//  "in_both", "compared", "same", "counts": {kind: n},
//  "tensors": {fqn: {"kind", "a": {"dtype", "shape", "tiles"} | null, "b", ...}},
//  "entries": {fqn: {"kind"}}, "unjudged": [{"what", "needs"}], "doubts": [sentence]}
// A renamed tensor stands there twice: under its name in A with "to", in B with "from".
std::string difference_to_json(const CheckpointDifference& difference, const ComparedPaths& paths);

// The verdict, what was not looked at, then what differs, the gravest first; names that differ only
// in their numbers together.
std::string difference_to_text(const CheckpointDifference& difference, const Checkpoint& a,
                               const Checkpoint& b, const ComparedPaths& paths,
                               const TextStyle& style);

}  // namespace shw
