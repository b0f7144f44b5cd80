// One of the two checkpoints from which a map is learned: its tensors in columns, and which of them
// are explained already.
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
  std::vector<CounterPattern> patterns;  // of the names: numbers are slots
  std::vector<Extents> shapes;
  std::vector<Dtype> dtypes;
  std::vector<std::size_t> ndims;
  std::vector<LineHashes> rows;  // as they are stored
  std::vector<bool> explained;
  // For tensors with the contents of another one: which one stands for them. Else the own number.
  std::vector<std::size_t> same_as;

  std::size_t size() const { return names.size(); }
};

// Reads every byte once. `is_source`: the map is to be applied to it, so that its names are those
// that maps read. An error only if cancelled.
Result<LearnSide> learn_side(std::shared_ptr<const Checkpoint> checkpoint, bool is_source,
                             Progress* progress);

// Whether a line of it tells it from other tensors: those of norms of ones do not.
bool has_telling_lines(const LearnSide& side, std::size_t tensor);

// A name up to its last part that is a number: "model.layers.3." of
// "model.layers.3.mlp.linear_fc1.weight", nothing of "model.norm.weight".
std::string numbered_prefix(const std::string& name);

// How alike two names are: the larger, the more of their words they share.
std::size_t likeness_of_names(const std::string& a, const std::string& b);

}  // namespace shw
