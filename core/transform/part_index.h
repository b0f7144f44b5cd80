// Index of a tensor's parts by position, so that a tile finds its parts without visiting all: a
// thousand tiles of a thousand parts would be a million visits.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/transform/box_index.h"
#include "core/transform/target_state.h"

namespace shw {

class PartIndex {
 public:
  // `tensor` must outlive the index unchanged.
  explicit PartIndex(const TargetTensor& tensor);
  const TargetTensor& tensor() const { return tensor_; }
  // See parts_of_tile() in target_state.h.
  std::vector<Part> parts_of_tile(const Box& tile) const;
  // Writes into `parts`, unless the tile is exactly one part of the tensor: returns that part then,
  // otherwise null.
  const Part* parts_of_tile(const Box& tile, std::vector<Part>& parts) const;
  // Parts that may overlap the tile, in the tensor's order: all that do and few others.
  std::vector<const Part*> near(const Box& tile) const;

 private:
  const Part* find_part_with_box(const Box& tile) const;

  const TargetTensor& tensor_;
  std::optional<BoxIndex> index_;  // along the dim with most cuts; nullopt: too few parts to index
};

// A tensor with its index, which points into it.
struct IndexedTensor {
  explicit IndexedTensor(TargetTensor arranged) : tensor(std::move(arranged)), index(tensor) {}
  IndexedTensor(const IndexedTensor&) = delete;
  IndexedTensor& operator=(const IndexedTensor&) = delete;
  const TargetTensor tensor;
  const PartIndex index;
};

}  // namespace shw
