// A file without a name in a folder of this machine: a part of posix_folder.cpp.
#pragma once

#include <memory>
#include <string>

#include "core/io/scratch.h"

namespace shw {

// `path` is what errors call the folder that `folder` is open for.
Result<std::shared_ptr<ScratchFile>> open_posix_scratch(int folder, const std::string& path);

}  // namespace shw
