// The error for a folder that no format recognises.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/formats/format_row.h"
#include "core/io/source.h"

namespace shw {

// How to open one of the checkpoints in its folders. `whole`: their paths.
std::string advice_on_folders(const Directory& directory, std::span<const Entry> entries,
                              const std::vector<std::string>& whole,
                              std::span<const FormatRow> rows);
// ".metadata, metadata.pkl, .safetensors": what the rows of the table look for.
std::string recognised_files_text(std::span<const FormatRow> rows);
// "readme.txt and logs/": what is directly in the folder.
std::string names_at_top(std::span<const Entry> entries);
// Adds to an error what Python would run if it loaded the folder's pickles.
void add_unsafe_pickles(Error& error, const Directory& directory);

}  // namespace shw
