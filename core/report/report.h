// Reports on a checkpoint: JSON for programs (schema in assets/), text for terminals, Markdown, and
// a single HTML page.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/words.h"  // human_bytes, human_count, plural
#include "core/facts/values/tensor_statistics.h"
#include "core/model/checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/repair/proof/certificate.h"
#include "core/repair/run/apply.h"
#include "core/report/page_view.h"
#include "core/rules/check.h"

namespace shw {

std::string info_to_json(const Checkpoint& checkpoint);
// Tensors and non-tensor entries with these indices, in this order.
std::string list_to_json(const Checkpoint& checkpoint, std::span<const std::uint32_t> tensors,
                         std::span<const std::uint32_t> objects);
// `limit`: maximum number of values, 0 for all. `values` may be null.
// `with_places`: the runs of bytes of each chunk too; reads the headers of its items.
std::string tensor_to_json(const Checkpoint& checkpoint, TensorId tensor,
                           const TensorValues* values, std::size_t limit, bool with_places = false);
std::string check_to_json(const CheckReport& report);
// `remaining`: findings that still apply to the output.
// `progress`: of the run, for the times of stages.
std::string repair_to_json(const RepairResult& result, std::span<const Finding> remaining = {},
                           const Progress* progress = nullptr);
// The same if the output was not checked again.
std::string finished_to_json(const RepairResult& result);
std::string sent_to_json(const SentResult& sent);
std::string verify_to_json(const VerifyReport& report);
std::string error_to_json(const Error& error);
// "usage", "system_refused": words for programs, which never change.
const char* error_code(ErrorKind kind);

struct CheckContext;  // ci_forms.h

// Input of the Markdown and HTML reports.
struct ReportInput {
  const Checkpoint& checkpoint;
  const CheckReport& check;
  const Plan* plan = nullptr;
  const Spec* spec = nullptr;
  std::string command;                                // command that reproduces it
  const CheckContext* asked = nullptr;                // baseline and policies; may be null
  std::span<const TensorStatistics> statistics = {};  // empty if no bytes were read
  const Certificate* certificate = nullptr;           // beside the checkpoint; may be null
  std::optional<TensorId> looked_at = {};  // drawn on the page, whatever was found; HTML only
  std::span<const PageView> views = {};    // drawn on the page in this order; HTML only
};
std::string report_markdown(const ReportInput& input);
// One self-contained page: no script that is needed to read it, no outside reference; tile maps as
// inline SVG.
std::string report_html(const ReportInput& input);

}  // namespace shw
