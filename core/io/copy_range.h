#pragma once

#include "core/base/progress.h"
#include "core/io/read_through.h"
#include "core/io/sink.h"
#include "core/io/source.h"

namespace shw {

// Bytes of a file at `at` of a new one; holes stay holes. `passing`, where it is not null, is given
// them on the way.
Status copy_range(const ByteSource& source, std::uint64_t offset, std::uint64_t length,
                  OutputFile& out, std::uint64_t at, Progress* progress,
                  const RangeParts* passing = nullptr);

}  // namespace shw
