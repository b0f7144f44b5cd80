// The records of a zip archive as the files of a directory.
#pragma once

#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/io/source.h"

namespace shw {

// Only the archive's directory is read. Records whose names are not safe paths are passed over; a
// deflated one is inflated while it is read.
Result<std::shared_ptr<const Directory>> open_zip_directory(
    std::shared_ptr<const ByteSource> source, std::string name);

}  // namespace shw
