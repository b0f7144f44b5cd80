// The map between two checkpoints of the same weights: found in their elements, folded into
// patterns and proved on every byte.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/maps/bind_map.h"

namespace shw {

// One tensor of B, or of A, that the map does not explain, and what is known of it.
struct UnexplainedTensor {
  std::string fqn;
  std::string why;
};

struct ExplainedRow {
  std::size_t row = 0;          // in ModelMap::rows
  std::size_t tensors = 0;      // of B that it makes
  bool is_by_name = false;      // several tensors have these elements: names decided
  bool is_cast = false;         // the dtypes of the two sides differ
  bool leaves_padding = false;  // rows that pad it are not in A
};

struct LearnedMap {
  ModelMap map;
  MapWay way = MapWay::kForward;  // that makes B of A
  bool needs_way = false;         // both are of one format: convert has to be told which way to go
  std::vector<ExplainedRow> rows;
  std::size_t tensors = 0;                     // of B
  std::size_t proved = 0;                      // of them, equal to the bit
  std::vector<UnexplainedTensor> unexplained;  // of B
  std::vector<std::string> unused;             // of A: no tensor of B is made of them
  bool is_all_explained() const { return unexplained.empty(); }
};

Result<LearnedMap> learn_map(const std::shared_ptr<const Checkpoint>& a,
                             const std::shared_ptr<const Checkpoint>& b, Progress* progress);

}  // namespace shw
