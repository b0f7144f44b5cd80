// The parts of a tensor by where they lie, so that a tile finds those that it is made of without
// going through all of them: a thousand tiles of a thousand parts would be a million looks.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/transform/box_index.h"
#include "core/transform/target_state.h"

namespace shw {

class PartIndex {
 public:
  // `tensor` must stay as it is for as long as this does.
  explicit PartIndex(const TargetTensor& tensor);
  const TargetTensor& tensor() const { return tensor_; }
  // What parts_of_tile() says.
  std::vector<Part> parts_of_tile(const Box& tile) const;
  // The same into `parts`; where the tile is one part as it stands, that one, and nothing there.
  const Part* parts_of_tile(const Box& tile, std::vector<Part>& parts) const;
  // Parts that may meet the tile, in the tensor's order: all that do, and few others.
  std::vector<const Part*> near(const Box& tile) const;

 private:
  const Part* whole_at(const Box& tile) const;

  const TargetTensor& tensor_;
  std::optional<BoxIndex> index_;  // along the dim that is cut most often; none: all are near
};

// A tensor with its index: it stays where it is made.
struct IndexedTensor {
  explicit IndexedTensor(TargetTensor arranged) : tensor(std::move(arranged)), index(tensor) {}
  IndexedTensor(const IndexedTensor&) = delete;
  IndexedTensor& operator=(const IndexedTensor&) = delete;
  const TargetTensor tensor;
  const PartIndex index;
};

}  // namespace shw
