// The file of hashes that the desktop writes: the text of `hash`, one line per tensor.
#pragma once

#include <string>

#include "core/io/store.h"
#include "core/verbs/ui_report.h"

namespace shw::verbs {

// Like write_ui_report(), "step_9000-hashes.txt". `over_ssh`: see ssh_use().
Result<WrittenReport> write_hashes(Store& store, const Opened& opened, const VerbOptions& options,
                                   const std::string& path, bool over_ssh,
                                   Progress* progress = nullptr);

}  // namespace shw::verbs
