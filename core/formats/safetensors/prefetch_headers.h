// Reads the headers of many remote files concurrently, before they are parsed one by one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/io/source.h"

namespace shw {

// `index_bytes`: size of the index, 0 if there is none. Does nothing for local files.
void prefetch_headers(const Directory& directory, const std::vector<std::string>& paths,
                      std::uint64_t index_bytes);

}  // namespace shw
