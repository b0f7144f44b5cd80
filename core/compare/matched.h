// A name that both checkpoints have: what was compared, and the resulting kind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/compare/difference.h"
#include "core/compare/tile_cover.h"
#include "core/compare/tile_pairs.h"
#include "core/compare/value_pass.h"
#include "core/model/checkpoint.h"

namespace shw {

struct MatchedTensors {
  TensorPair tensor;
  TileCover a, b;
  bool other_shape = false, other_dtype = false, retiled = false;
  bool same_items = false;  // the same byte ranges of the same files
  std::int64_t filled_a = 0, filled_b = 0;
  std::optional<ComparedPairResult> seen = {};
  std::optional<bool> same_elements = {};
  std::vector<std::string> doubts = {};  // why values are undecided
};

// Sides with unreadable parts that may contain more of the tensor.
struct UnreadableSides {
  bool a = false, b = false;
};

TensorSide side_of(const Checkpoint& checkpoint, TensorId tensor);

// "B has what could not be opened, and it may be there"
std::string unreadable_side_text(const char* side, const char* what);

struct MatchVerdict {
  std::optional<DifferenceKind> kind;  // empty: everything compared is equal
  TensorDifference told;
};
MatchVerdict judge(const BothCheckpoints& both, const MatchedTensors& matched,
                   UnreadableSides hides);

}  // namespace shw
