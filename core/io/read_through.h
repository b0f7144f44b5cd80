// Reads a range of a source sequentially, in parts that fit in a core's cache.
#pragma once

#include <functional>

#include "core/base/progress.h"
#include "core/io/source.h"

namespace shw {

// Callbacks for the parts of a range, called in order.
struct ExtentVisitor {
  std::function<Status(BytesView)> bytes;
  // Called for a hole; null: a hole is delivered as zero bytes.
  std::function<Status(std::uint64_t length)> hole = nullptr;
};

// Reads every byte once, into one buffer; `progress` counts the bytes.
Status read_through(const ByteSource& source, std::uint64_t offset, std::uint64_t length,
                    const ExtentVisitor& parts, Progress* progress);

}  // namespace shw
