// The error for a folder or a file that no format recognises.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/formats/format_row.h"
#include "core/io/source.h"

namespace shw {

// Advice for a folder that is not a checkpoint but contains some: which command opens one of them.
// `whole`: paths of the contained checkpoints.
std::string advice_to_open_one_of(const Directory& directory, std::span<const Entry> entries,
                                  const std::vector<std::string>& whole,
                                  std::span<const FormatRow> rows);
// ".metadata, metadata.pkl, .safetensors": what the rows of the table look for.
std::string recognised_files_text(std::span<const FormatRow> rows);
// "readme.txt and logs/": what is directly in the folder.
std::string names_at_top(std::span<const Entry> entries);
// True for configurations, tokenizers and a trainer's own state, which hold no tensors.
bool is_read_next_to_weights(std::string_view path);
// `format`: what the first bytes say that it is; may be empty. `parent`: the folder of the file.
tl::unexpected<Error> refused_file(const std::string& path, const std::string& parent,
                                   std::string_view format);
// Adds to an error what Python would run if it loaded the folder's pickles.
void add_unsafe_pickles(Error& error, const Directory& directory);

}  // namespace shw
