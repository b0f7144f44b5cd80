// Non-tensor values at the top level of torch.save files that also contain tensors: "args",
// "lr_scheduler".
#pragma once

#include <cstddef>
#include <map>

#include "core/formats/common/carried_storages.h"
#include "core/model/checkpoint.h"

namespace shw {

struct Progress;

// Implements ItemReader::carry_inlined for checkpoints of several torch.save files: an entry's
// value is that of the key of the same name, in the first file that has it.
Status carry_values_of_torch_files(const Checkpoint& checkpoint,
                                   std::map<std::size_t, Result<CarriedValue>>& values,
                                   Progress* progress);

}  // namespace shw
