// A target tensor packed between two steps: about 26 bytes per tile, while unpacked boxes and parts
// take 512. Of 3.5 million tiles only those of the current tensors are ever unpacked.
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
  std::string tiles_;           // then the parts, as numbers (packed_tensor.cpp)
  std::vector<std::shared_ptr<const RareOutputTileFields>>
      more_;  // for tiles that have it, in order
};

}  // namespace shw
