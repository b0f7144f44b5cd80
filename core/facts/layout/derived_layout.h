// Layouts that no spec gives and the checkpoint itself does: what the tensors beside one say of its
// true shape, who wrote its chunks, and what a person said of the mesh. Only of tensors that lost
// an axis at save; each is held against the writers of every chunk before anything is placed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/facts/check_input.h"
#include "core/model/finding.h"

namespace shw {

struct DerivedLayout {
  Spec spec;        // of the tensors in question alone
  std::string law;  // what says so, in one sentence
  double confidence = 0;
  std::string link;  // of the report that it is like
};

// What a derived layout leaves undecided, told as a warning.
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

// The same input with a derived layout for a spec.
CheckInput with_layout(const CheckInput& input, const DerivedLayout& layout);

// Ranks that wrote something, or that left a file of their own beside the checkpoint.
std::int64_t ranks_seen(const CheckInput& input, const std::vector<std::int64_t>& beside);

}  // namespace shw
