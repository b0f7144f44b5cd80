// Copies one open file into another, as cheaply as the file system can: a part of posix_sink.cpp.
#pragma once

#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"

namespace shw {

// `destination` is new and empty. Reflink where it works, else data ranges only, so that holes stay
// holes; mode and time of change are kept; durable when it returns. Progress counts logical bytes,
// holes included. `name` is what errors call the source.
Status copy_whole_file(int source, int destination, const std::string& name, Progress* progress);

}  // namespace shw
