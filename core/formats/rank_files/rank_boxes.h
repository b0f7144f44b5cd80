// Which boxes of a DTensor a rank's local tensor is made of, by mesh and placements.
#pragma once

#include <vector>

#include "core/formats/common/side_tensors.h"

namespace shw {

// The boxes in the order in which the local tensor holds them along the axis that is cut into
// several; one where the local tensor is one box, none where it is empty. `rank`: where the mesh
// does not say whose part it is. kUnsupported: what is in the way.
Result<std::vector<Box>> boxes_of_sharding(const SideSharding& sharding, std::int64_t rank);

}  // namespace shw
