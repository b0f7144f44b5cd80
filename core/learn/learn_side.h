// One of the two checkpoints from which a map is learned: its tensors as columns, and which of them
// are explained.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/learn/line_hashes.h"
#include "core/learn/search_rows.h"
#include "core/maps/counter_pattern.h"

namespace shw {

struct LearnSide {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::vector<std::string> names;
  std::vector<CounterPattern> patterns;  // of the names; numbers are slots
  std::vector<Extents> shapes;
  std::vector<Dtype> dtypes;
  std::vector<std::size_t> ndims;
  std::vector<LineHashes> rows;  // as they are stored
  std::vector<bool> explained;
  // For each tensor: index of the first tensor with equal content (itself if there is none).
  std::vector<std::size_t> same_as;

  std::size_t size() const { return names.size(); }
};

// Reads every byte once. `is_source`: the map will be applied to it, so names are normalised as
// maps read them. An error only if cancelled.
Result<LearnSide> learn_side(std::shared_ptr<const Checkpoint> checkpoint, bool is_source,
                             Progress* progress);

// True if a line distinguishes the tensor from others, unlike in norms of ones.
bool has_distinctive_lines(const LearnSide& side, std::size_t tensor);

// Prefix of a name up to its last numeric part: "model.layers.3." for
// "model.layers.3.mlp.linear_fc1.weight", empty for "model.norm.weight".
std::string numbered_prefix(const std::string& name);

// Similarity of two names: grows with the number of common words.
std::size_t name_similarity(const std::string& a, const std::string& b);

}  // namespace shw
