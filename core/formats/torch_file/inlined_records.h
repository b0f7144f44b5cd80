// Bytes of a file of torch.save that no tensor of the checkpoint views, but that belong to what is
// in it: a tensor in a tuple (torch takes a tuple for one value), a sparse or a quantised one.
#pragma once

#include <vector>

#include "core/base/progress.h"
#include "core/formats/common/item_header.h"
#include "core/model/checkpoint.h"

namespace shw {

// The checksums of their records, asked once each. The pickle is read again for it: that costs
// nothing beside the bytes, and a checkpoint need not remember them.
Status check_inlined_records(const Checkpoint& checkpoint, std::vector<Result<DataCheck>>& objects,
                             Progress* progress);

}  // namespace shw
