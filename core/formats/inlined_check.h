// Bytes that entries without an item of their own refer to (see ItemReader::check_inlined).
#pragma once

#include <vector>

#include "core/base/progress.h"
#include "core/formats/items.h"

namespace shw {

// Held against their checksums; where one differs, `objects` (one answer an object) says so.
Status check_inlined_data(const Checkpoint& checkpoint, std::vector<Result<DataCheck>>& objects,
                          Progress* progress);

}  // namespace shw
