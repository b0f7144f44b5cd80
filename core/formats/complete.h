// What a loader asks for beside the tensors, where they come from a checkpoint of another format:
// entries and files that no tensor makes.
#pragma once

#include <string_view>

#include "core/formats/format_writer.h"
#include "core/formats/small_files.h"

namespace shw {

// Adds the entries to `outputs`, and gives the files.
Result<SmallFiles> complete_outputs(const Format& format, Outputs& outputs);
// Whether complete_outputs() may have added an entry of that name.
bool is_added_entry(const Format& format, std::string_view fqn);

}  // namespace shw
