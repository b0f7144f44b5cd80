// Bytes of a file of torch.save that no tensor of the checkpoint views, but that belong to what is
// in it: a tensor in a tuple (torch takes a tuple for one value), a sparse or a quantised one.
#pragma once

#include <map>
#include <vector>

#include "core/base/progress.h"
#include "core/formats/common/carried_storages.h"
#include "core/formats/common/item_header.h"
#include "core/model/checkpoint.h"

namespace shw {

// The checksums of their records, asked once each. The pickle is read again for it: that costs
// nothing beside the bytes, and a checkpoint need not remember them.
Status check_inlined_records(const Checkpoint& checkpoint, std::vector<Result<DataCheck>>& objects,
                             Progress* progress);

// The values of objects whose opcodes do not say all that they are, with their storages.
Status carry_inlined_records(const Checkpoint& checkpoint,
                             std::map<std::size_t, Result<CarriedValue>>& values,
                             Progress* progress);

}  // namespace shw
