// Reads a small JSON file of a folder: a config or a list of parts. The file is not trusted.
#pragma once

#include <string>

#include "core/base/json.h"
#include "core/formats/format_row.h"

namespace shw {

// Null if the file is missing, larger than 1 MiB or not JSON. Nested at most 16 levels deep.
nlohmann::json read_small_json(const DirectoryContents& look, const std::string& path);

}  // namespace shw
