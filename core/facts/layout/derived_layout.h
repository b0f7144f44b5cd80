// Layouts derived from the checkpoint itself, without a spec: from neighbouring tensors, the ranks
// that wrote chunks, and the user's mesh. Only for tensors that lost an axis at save; each layout
// is checked against the writers of all chunks before anything is placed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/facts/check_input.h"
#include "core/model/finding.h"

namespace shw {

struct DerivedLayout {
  Spec spec;               // entries for the affected tensors only
  std::string constraint;  // the shape relation behind it, in one sentence
  double confidence = 0;
  std::string link;  // a public report of this kind of damage
};

// A layout that could not be decided; reported as a warning.
struct UndecidedAxis {
  std::vector<std::string> subjects;
  std::string cause;
  std::vector<std::pair<std::string, EvidenceValue>> evidence;
  std::string link;
};

struct DerivedLayouts {
  std::vector<DerivedLayout> decided;
  std::vector<UndecidedAxis> undecided;
};

// A copy of the input with the derived layout as its spec.
CheckInput with_layout(const CheckInput& input, const DerivedLayout& layout);

// The highest known rank + 1: of chunk writers, of ranks in file names, and of `beside`.
std::int64_t count_ranks(const CheckInput& input, const std::vector<std::int64_t>& beside);

}  // namespace shw
