// Sizes that vision towers derive from patch_size and image_size: the kernel that cuts an image
// into patches, and the number of their positions.
#pragma once

#include <vector>

#include "core/facts/reference/model_config.h"
#include "core/facts/reference/size_contradiction.h"
#include "core/model/checkpoint.h"

namespace shw {

std::vector<SizeContradiction> patch_contradictions(const Checkpoint& checkpoint,
                                                    const ModelConfig& config);

}  // namespace shw
