// Boxes of a DTensor that a rank's local tensor contains, from mesh and placements.
#pragma once

#include <vector>

#include "core/formats/common/torch_file_tensors.h"

namespace shw {

// Boxes in the order of the local tensor, several along an axis cut into pieces, none if it
// is empty. `rank` is used if the mesh does not tell the rank. kUnsupported with the
// reason.
Result<std::vector<Box>> boxes_of_sharding(const DTensorSharding& sharding, std::int64_t rank);

}  // namespace shw
