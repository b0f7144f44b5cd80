// Unnamed temporary files in a folder of the local file system. Used by posix_folder.cpp.
#pragma once

#include <memory>
#include <string>

#include "core/io/scratch.h"

namespace shw {

// `folder` is the open folder; `path` is its name in errors.
Result<std::shared_ptr<ScratchFile>> open_posix_scratch(int folder, const std::string& path);

}  // namespace shw
