// Verifies the checksums of a whole zip archive.
#pragma once

#include <memory>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/common/item_header.h"
#include "core/io/source.h"

namespace shw {

// Compares the CRC of every record with its bytes, inflated where they are compressed. kAbsent if
// the writer omitted checksums.
Result<DataCheck> check_zip_records(const std::shared_ptr<const ByteSource>& file,
                                    Progress* progress);

}  // namespace shw
