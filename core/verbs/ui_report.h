// The page that a shortcut of the desktop writes: findings, planned repairs, and the selected
// tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/io/store.h"
#include "core/report/page_view.h"
#include "core/verbs/verbs.h"

namespace shw::verbs {

struct UiReport {
  Opened opened;
  const VerbOptions& options;
  const CheckReport& found;
  const Plan* plan = nullptr;            // may be null
  std::optional<TensorId> looked_at;     // the tensor on the screen
  std::span<const PageView> views = {};  // saved views
  std::string path = {};                 // a new file, or a folder; empty: next to the checkpoint
};
struct WrittenReport {
  std::string path;
  std::uint64_t bytes = 0;
};

// Writes under a temporary name and publishes the file only if the name is still free.
Result<WrittenReport> write_new_text(Store& store, const std::string& path,
                                     const std::string& text);
// Never replaces a file: uses the first free name in the folder ("step_9000-report.html",
// "step_9000-report-2.html") and refuses a named file that exists.
Result<WrittenReport> write_ui_report(Store& store, const UiReport& wanted);

}  // namespace shw::verbs
