// An arranged tensor as it waits between two steps: the same numbers in some 26 bytes a tile, where
// the boxes and parts that steps work on take 512. Of 3.5 million tiles only those of the tensors
// that are being worked on are ever unpacked.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/transform/target_state.h"

namespace shw {

class PackedTensor {
 public:
  explicit PackedTensor(TargetTensor tensor);
  TargetTensor unpacked() const;
  const Loss& loss() const { return without_tiles_.loss; }

 private:
  TargetTensor without_tiles_;  // and without parts
  std::string tiles_;           // then parts, as numbers (packed_tensor.cpp)
  std::vector<std::shared_ptr<const OutputTileMore>> more_;  // of tiles that have it, in order
};

}  // namespace shw
