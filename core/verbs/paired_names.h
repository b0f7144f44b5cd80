// Two checkpoints of one model that two programs wrote: which tensors of one belong to which of the
// other, row by row of the map between them.
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

// Tensors as they are saved: `to` is made of `from`.
struct PairedTensors {
  std::vector<std::string> from, to;
};

struct PairedRow {
  std::vector<std::string> from, to;  // patterns: "model.layers.{l}.mlp.up_proj.weight"
  std::vector<std::string> from_shapes, to_shapes;  // of the first of its tensors, by pattern
  std::vector<std::string> does;                    // what happens to them: sentences with shapes
  std::vector<PairedTensors> tensors;
  std::size_t from_count = 0, to_count = 0;  // tensors
  std::size_t missing = 0;                   // of those that it makes: the other side has none
  std::size_t different = 0;                 // of both sides, where they were compared
  std::string doubt;                         // of a learned row: what names alone decided
};

// A tensor without a row.
struct UnpairedTensor {
  std::string fqn;
  std::string why;
};

struct PairedNames {
  std::string map;            // its name; empty: learned from the elements
  std::string from, to;       // the programs, as maps name them: "hf", "torch_dist"
  bool is_first_from = true;  // the first checkpoint is in the world `from`
  std::vector<PairedRow> rows;
  std::vector<UnpairedTensor> only_from, only_to;
  // Learned: tensors of the second checkpoint, and how many of them are equal to the bit.
  std::optional<std::size_t> tensors, proved;
};

// Nothing where both have names of one program, or of none that is known.
Result<std::optional<PairedNames>> pair_names(const Checkpoint& first, const Checkpoint& second);
// Through a map that was learned from the two.
Result<PairedNames> pair_learned(const Checkpoint& first, const Checkpoint& second,
                                 const LearnedMap& learned);

// Counts the tensors of each row that a comparison of the two names.
void mark_differences(const CheckpointDifference& difference, PairedNames& names);

// What a row does to its first tensors, in words. Empty: the same elements under another name.
std::vector<std::string> row_words(const ModelMap& map, const BoundRow& row);

}  // namespace shw::verbs
