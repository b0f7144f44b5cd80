// Entries without tensors at the top of torch.save files that hold tensors too: "args",
// "lr_scheduler".
#pragma once

#include <cstddef>
#include <map>

#include "core/formats/common/carried_storages.h"
#include "core/model/checkpoint.h"

namespace shw {

struct Progress;

// ItemReader::carry_inlined of checkpoints of several such files: an entry is the value of the key
// that is named like it, in the first file that has one.
Status carry_side_values(const Checkpoint& checkpoint,
                         std::map<std::size_t, Result<CarriedValue>>& values, Progress* progress);

}  // namespace shw
