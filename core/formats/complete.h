// Adds entries and files that loaders of a format require besides the tensors, for checkpoints
// converted from another format.
#pragma once

#include <string_view>

#include "core/formats/format_writer.h"
#include "core/formats/small_files.h"

namespace shw {

// Adds the entries to `outputs` and returns the files.
Result<SmallFiles> complete_outputs(const Format& format, Outputs& outputs);
// True if complete_outputs() may have added an entry of this name.
bool may_be_added_by_writer(const Format& format, std::string_view fqn);

// True if complete_outputs() writes the settings of an optimizer next to its states
// (adam_settings.h).
bool completes_optimizer(const Format& format);

}  // namespace shw
