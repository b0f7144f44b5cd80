// Files inside of a checkpoint, opened as a checkpoint of their own format. Defined in open.cpp,
// which knows all formats; declared here for formats that hold files of others.
#pragma once

#include <memory>
#include <string>

#include "core/formats/format_row.h"

namespace shw {

OpenedCheckpoint open_nested(const std::shared_ptr<const Directory>& directory,
                             const std::string& path);
// All that is inside, an archive's files for example.
OpenedCheckpoint open_nested(std::shared_ptr<const Directory> inside, Progress* progress);

}  // namespace shw
