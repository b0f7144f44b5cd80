// Reports on a checkpoint: JSON for programs (schema in assets/), text for terminals, Markdown, and
// a single HTML page.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/words.h"  // human_bytes, human_count, plural
#include "core/facts/names/quantised_weight.h"
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
// Each tensor of a quantised weight names that weight.
std::string list_to_json(const Checkpoint& checkpoint, std::span<const std::uint32_t> tensors,
                         std::span<const std::uint32_t> objects,
                         std::span<const QuantisedWeight> quantised = {});
// `limit`: maximum number of values, 0 for all. `values` may be null. `with_places`: also lists the
// byte runs of each chunk, which reads the headers of its items. `quantised`: the quantised weight
// that the tensor is a part of; may be null.
std::string tensor_to_json(const Checkpoint& checkpoint, TensorId tensor,
                           const TensorValues* values, std::size_t limit, bool with_places = false,
                           const QuantisedWeight* quantised = nullptr);
std::string check_to_json(const CheckReport& report);
// As check_to_json() writes it. Findings of equal text may differ in diagnoses.
std::string finding_to_json(const Finding& finding);
// `remaining`: findings that still apply to the output. `progress`: for the times of stages.
std::string repair_to_json(const RepairResult& result, std::span<const Finding> remaining = {},
                           const Progress* progress = nullptr);
// Like repair_to_json(), for an output that was not checked again.
std::string finished_to_json(const RepairResult& result);
std::string upload_to_json(const UploadResult& sent);
std::string verify_to_json(const VerifyReport& report);
std::string error_to_json(const Error& error);
// Stable identifiers for programs: "usage", "system_refused".
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
  const Certificate* certificate = nullptr;           // next to the checkpoint; may be null
  std::optional<TensorId> looked_at = {};  // drawn on the page even without findings; HTML only
  std::span<const PageView> views = {};    // drawn on the page in this order; HTML only
};
std::string report_markdown(const ReportInput& input);
// One self-contained page: readable without scripts, no external references, tile maps as inline
// SVG.
std::string report_html(const ReportInput& input);

}  // namespace shw
