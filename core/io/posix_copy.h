// Copies one open file into another, as cheaply as the file system can: a part of posix_sink.cpp.
#pragma once

#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/read_through.h"

namespace shw {

// `destination` is new and empty. Reflink where it works, else data ranges only, so that holes stay
// holes; mode and time of change are kept; durable when it returns. Progress counts logical bytes,
// holes included. `name` is what errors call the source. `passing`, where it is not null, is given
// every byte that is copied, front to back; false where none was, since the bytes are shared.
Result<bool> copy_whole_file(int source, int destination, const std::string& name,
                             const RangeParts* passing, Progress* progress);

}  // namespace shw
