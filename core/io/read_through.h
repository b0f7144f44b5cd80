// A range of a source from front to back, in parts that stay in a core's cache.
#pragma once

#include <functional>

#include "core/base/progress.h"
#include "core/io/source.h"

namespace shw {

// What is done with the parts of a range, in order.
struct RangeParts {
  std::function<Status(BytesView)> bytes;
  // Zeros that take no disk; null: they come as bytes.
  std::function<Status(std::uint64_t length)> hole = nullptr;
};

// Reads every byte once, into one buffer; `progress` counts them.
Status read_through(const ByteSource& source, std::uint64_t offset, std::uint64_t length,
                    const RangeParts& parts, Progress* progress);

}  // namespace shw
