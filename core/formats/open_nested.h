// Opens files inside of a checkpoint as a checkpoint of their own format. Defined in open.cpp,
// which knows all formats; used by container formats.
#pragma once

#include <memory>
#include <string>

#include "core/formats/format_row.h"

namespace shw {

OpenedCheckpoint open_nested(const std::shared_ptr<const Directory>& directory,
                             const std::string& path);
// `inside`: all contained files, for example those of an archive.
OpenedCheckpoint open_nested(std::shared_ptr<const Directory> inside, Progress* progress);

}  // namespace shw
