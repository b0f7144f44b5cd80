// Statistics of each step of a run, as JSON and text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/report/listing.h"

namespace shw {

// Sums over the float tensors of one module at one step.
struct RunModuleReport {
  std::string module;          // "layers.5.mlp"
  std::uint64_t elements = 0;  // number of elements read
  std::uint64_t unread = 0;    // number of elements that are missing or unreadable
  std::uint64_t nan = 0, infinite = 0;
  double norm = 0;                    // L2 norm of the finite elements
  std::optional<double> change = {};  // change of the norm since the previous step: 0.1 is 10 %
};

struct RunStepReport {
  std::string step, path, written;  // "step_300", its path, "2026-11-27 05:31"
  std::optional<Error> error = {};  // why nothing was counted
  std::size_t files_unread = 0;     // files whose tensors are unknown
  RunModuleReport all = {};
  std::vector<RunModuleReport> modules = {};
  bool is_whole() const { return !error && all.unread == 0 && files_unread == 0; }
};

struct RunReport {
  std::vector<RunStepReport> steps;  // newest first
  std::string summary;               // the first NaN, and what was not read
};

// {"steps": [{"step", "path", "written", "norm", "change", "elements", "nan", "inf", "unread",
//             "modules": {name: {"norm", "change", "elements", "nan", "inf", "unread"}}}],
//  "summary"}; "change" is null without a step to compare with; "files_unread" and "error" only
// where there is one.
std::string run_to_json(const RunReport& run);
// One line per step, with the module that has most NaN, or whose norm changed most.
std::string run_to_text(const RunReport& run, const TextStyle& style);

}  // namespace shw
