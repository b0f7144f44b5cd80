// Checks data referenced by entries without an item of their own (ItemReader::check_inlined).
#pragma once

#include <vector>

#include "core/base/progress.h"
#include "core/formats/items.h"

namespace shw {

// Verifies the checksums; mismatches are stored in `objects`, one result per entry.
Status check_inlined_data(const Checkpoint& checkpoint, std::vector<Result<DataCheck>>& objects,
                          Progress* progress);

}  // namespace shw
