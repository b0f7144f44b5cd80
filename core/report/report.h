// The words and pictures about a checkpoint: JSON for programs (design 5.1, schema in assets/),
// text for terminals, Markdown, and one HTML page.
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
#include "core/rules/check.h"

namespace shw {

std::string info_to_json(const Checkpoint& checkpoint);
// The tensors and objects with these indices, in this order.
std::string list_to_json(const Checkpoint& checkpoint, std::span<const std::uint32_t> tensors,
                         std::span<const std::uint32_t> objects);
// `limit`: values shown; 0 for all. `values` null: none.
std::string tensor_to_json(const Checkpoint& checkpoint, TensorId tensor,
                           const TensorValues* values, std::size_t limit);
std::string check_to_json(const CheckReport& report);
// `remaining`: what is still wrong in the output.
// `progress`: of the run, for what its time went into.
std::string repair_to_json(const RepairResult& result, std::span<const Finding> remaining = {},
                           const Progress* progress = nullptr);
// The same where nobody has looked what is still wrong.
std::string finished_to_json(const RepairResult& result);
std::string verify_to_json(const VerifyReport& report);
std::string error_to_json(const Error& error);

struct CheckContext;  // ci_forms.h

// What the Markdown and HTML reports are made from.
struct ReportInput {
  const Checkpoint& checkpoint;
  const CheckReport& check;
  const Plan* plan = nullptr;
  const Spec* spec = nullptr;
  std::string command;                                // how to reproduce it
  const CheckContext* asked = nullptr;                // a baseline and policies; may be null
  std::span<const TensorStatistics> statistics = {};  // none where no byte was read
  const Certificate* certificate = nullptr;           // that lies beside it; may be null
  std::optional<TensorId> looked_at = {};  // drawn on the page, whatever was found; HTML only
};
std::string report_markdown(const ReportInput& input);
// One self-contained page: no script that is needed to read it, no outside reference; tile maps as
// inline SVG.
std::string report_html(const ReportInput& input);

}  // namespace shw
