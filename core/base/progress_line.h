// Progress as a line of JSON for the program that started this one (SHARDWRIGHT_PROGRESS=json):
//
//   {"progress": {"phase": "Reading bytes", "done": 1, "total": 2, "unit": "bytes"}}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/progress.h"

namespace shw {

std::string_view phase_title(Phase phase);  // "Reading bytes"

std::string progress_line(Phase phase, std::uint64_t done, std::uint64_t total, bool in_bytes);
// Sets the progress of another program's line; false if it is no such line.
bool read_progress_line(std::string_view line, Progress& progress);

}  // namespace shw
