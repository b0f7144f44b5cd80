// Copies an open file as cheaply as the file system allows. Used by posix_folder.cpp.
#pragma once

#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/read_through.h"

namespace shw {

// `destination` must be new and empty. Uses a reflink if possible, else copies only the data ranges
// so that holes stay holes. Mode and modification time are kept; the copy is durable on return.
// Progress counts logical bytes including holes. `name` is used in errors. `passing`, if not null,
// receives all copied bytes in order. Returns false if the bytes were shared instead.
Result<bool> copy_whole_file(int source, int destination, const std::string& name,
                             const ExtentVisitor* passing, Progress* progress);

}  // namespace shw
