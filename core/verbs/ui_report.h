// The page that one shortcut of the desk writes: what was found, what a repair would do, and the
// tensor that is looked at.
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
  std::optional<TensorId> looked_at;     // on the screen
  std::span<const PageView> views = {};  // that were saved
  std::string path = {};  // a file that is not there yet, or a folder; empty: beside the checkpoint
};
struct WrittenReport {
  std::string path;
  std::uint64_t bytes = 0;
};

// Never over anything: beside the checkpoint, and in a folder, the first name that is free
// ("step_9000-report.html", "step_9000-report-2.html"); a file that is named and there is refused.
Result<WrittenReport> write_ui_report(Store& store, const UiReport& wanted);

}  // namespace shw::verbs
