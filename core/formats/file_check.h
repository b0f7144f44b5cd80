// Checksums that stand beside the items: of a file, or of large parts of it.
#pragma once

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/common/item_header.h"
#include "core/model/checkpoint.h"

namespace shw {

// False where no file of its format has any.
bool has_file_checks(const Checkpoint& checkpoint);
// Reads all that has such a checksum; kAbsent where this file has none.
Result<DataCheck> check_file_data(const Checkpoint& checkpoint, FileId file, Progress* progress);

}  // namespace shw
