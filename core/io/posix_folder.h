// A writable folder of the local file system, opened by posix_store.cpp.
#pragma once

#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/io/store.h"

namespace shw {

Result<std::unique_ptr<WritableDirectory>> open_posix_folder(const std::string& path);
// Implements Store::can_reflink().
bool can_reflink_into_posix_folder(const std::string& path, const ByteSource& source);

}  // namespace shw
