// Learns the map between two checkpoints of the same weights: found in their elements, folded into
// patterns and proved on every byte.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/maps/bind_map.h"

namespace shw {

// A tensor of A or B that the map does not explain, with what is known about it.
struct UnexplainedTensor {
  std::string fqn;
  std::string why;
};

struct ExplainedRow {
  std::size_t row = 0;          // in ModelMap::rows
  std::size_t tensors = 0;      // number of tensors of B that it makes
  bool is_by_name = false;      // several tensors have these elements, so names decided
  bool is_cast = false;         // the dtypes of the two sides differ
  bool leaves_padding = false;  // its padding rows are not in A
};

struct LearnedMap {
  ModelMap map;
  MapDirection way = MapDirection::kForward;  // direction that makes B from A
  bool needs_direction = false;  // both have one format, so convert needs the direction
  std::vector<ExplainedRow> rows;
  std::size_t tensors = 0;                     // number of tensors of B
  std::size_t proved = 0;                      // number of them that are equal to the bit
  std::vector<UnexplainedTensor> unexplained;  // of B
  std::vector<std::string> unused;             // of A: the map uses them for no tensor of B
  bool is_all_explained() const { return unexplained.empty(); }
};

Result<LearnedMap> learn_map(const std::shared_ptr<const Checkpoint>& a,
                             const std::shared_ptr<const Checkpoint>& b, Progress* progress);

}  // namespace shw
