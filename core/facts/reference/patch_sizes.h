// Sizes that vision towers derive from patch_size and image_size: the kernel that cuts an image
// into patches, and the number of their positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/facts/reference/model_config.h"
#include "core/model/checkpoint.h"

namespace shw {

struct PatchContradiction {
  std::string words;              // "vision_config.patch_size 16"
  std::vector<std::string> keys;  // "vision_config.patch_size"
  std::int64_t said = 0;
  std::vector<TensorId> tensors;  // not empty
  std::size_t axis = 0;           // of the contradicting extent
};

std::vector<PatchContradiction> patch_contradictions(const Checkpoint& checkpoint,
                                                     const ModelConfig& config);

}  // namespace shw
