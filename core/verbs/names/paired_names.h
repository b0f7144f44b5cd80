// Pairs the tensors of two checkpoints that different programs wrote, row by row of the map between
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/compare/difference.h"
#include "core/learn/learn.h"
#include "core/model/checkpoint.h"

namespace shw::verbs {

// Saved names: tensors `to` are made from tensors `from`.
struct PairedTensors {
  std::vector<std::string> from, to;
};

struct PairedRow {
  std::vector<std::string> from, to;  // patterns: "model.layers.{l}.mlp.up_proj.weight"
  std::vector<std::string> from_shapes, to_shapes;  // of the row's first tensors, by pattern
  std::vector<std::string> does;                    // operations as sentences with shapes
  std::vector<PairedTensors> tensors;
  std::size_t from_count = 0, to_count = 0;  // numbers of tensors
  std::size_t missing = 0;                   // number of results that the other side lacks
  std::size_t different = 0;  // number of differing tensors of both sides, if compared
  std::string doubt;          // for a learned row: what only names decided
};

// A tensor that no row covers.
struct UnpairedTensor {
  std::string fqn;
  std::string why;
};

struct PairedNames {
  std::string map;            // name of the map; empty: learned from the elements
  std::string from, to;       // programs by their names in maps: "hf", "torch_dist"
  bool is_first_from = true;  // true: the first checkpoint is in world `from`
  std::vector<PairedRow> rows;
  std::vector<UnpairedTensor> only_from, only_to;
  // For a learned map: number of tensors of the second checkpoint, and of those that are equal to
  // the bit.
  std::optional<std::size_t> tensors, proved;
};

// nullopt if the names belong to one program or to no known one.
Result<std::optional<PairedNames>> pair_names(const Checkpoint& first, const Checkpoint& second);
// Pairs names through a map that was learned from the two checkpoints.
Result<PairedNames> pair_learned(const Checkpoint& first, const Checkpoint& second,
                                 const LearnedMap& learned);

// Counts the tensors of each row that the comparison found different.
void count_row_differences(const CheckpointDifference& difference, PairedNames& names);

// Operations of a row on its first tensors, as text; empty for a rename only.
std::vector<std::string> row_words(const ModelMap& map, const BoundRow& row);

}  // namespace shw::verbs
