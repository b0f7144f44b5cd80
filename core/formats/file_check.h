// Checksums of whole files, or of large parts of them, stored next to the items.
#pragma once

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/common/item_header.h"
#include "core/model/checkpoint.h"

namespace shw {

// False if no file of the format has one.
bool has_file_checks(const Checkpoint& checkpoint);
// Verifies the checksums of a file; kAbsent if it has none.
Result<DataCheck> check_file_data(const Checkpoint& checkpoint, FileId file, Progress* progress);

}  // namespace shw
