#include "core/verbs/transforms.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/words.h"
#include "core/formats/replicas.h"
#include "core/model/evidence.h"
#include "core/model/unread_files.h"
#include "core/repair/plan/plan.h"
#include "core/repair/plan/plan_fingerprint.h"
#include "core/repair/plan/target_of_plan.h"
#include "core/repair/run/estimate_text.h"
#include "core/repair/run/run_plan.h"
#include "core/rules/rules.h"
#include "core/tensor/cast.h"
#include "core/verbs/computed_path.h"

namespace shw::verbs {
namespace {

// Class of a job, which determines its cost.
const char* class_of(const Program& program, const ProgramJob& job) {
  switch (job.op) {
    case ElementOp::kCast:
      return "cast";
    case ElementOp::kConstant:
      return "fill";
    case ElementOp::kScale:
      return "scale";
    case ElementOp::kCopy:
      break;
  }
  return reads_contiguous_rows(program, job) ? "rows" : "strided";
}

// One line per cast that cannot represent all values.
std::vector<std::string> lossy_casts(const Program& program) {
  std::set<std::pair<Dtype, Dtype>> casts;
  for (const ProgramJob& job : program.jobs) {
    if (job.op != ElementOp::kCast && job.op != ElementOp::kScale) continue;
    Dtype now = job.op == ElementOp::kScale ? Dtype::kFloat32 : job.from;
    auto go_to = [&](Dtype to) {
      if (!can_represent(to, now)) casts.emplace(now, to);
      now = to;
    };
    for (Dtype to : job.via) {
      if (to != Dtype::kUnknown) go_to(to);
    }
    go_to(job.to);
  }
  std::vector<std::string> words;
  for (const auto& [from, to] : casts)
    words.push_back(fmt::format("{} to {}: {}; the certificate lists how many per tensor",
                                name(from), name(to), out_of_range_text(to)));
  return words;
}

}  // namespace

Plan empty_plan_for(const Opened& opened) {
  Plan plan;
  const auto& directory = opened.checkpoint->directory();
  plan.checkpoint = directory == nullptr ? std::string() : directory->name();
  plan.fingerprint = fingerprint(*opened.checkpoint);
  return plan;
}

namespace {

nlohmann::ordered_json predicted_json(const Forecast& forecast) {
  nlohmann::ordered_json out;
  for (std::size_t i = 0; i < kStages; ++i)
    out[std::string(name(static_cast<Stage>(i)))] = forecast.seconds[i];
  out["total"] = forecast.total;
  out["longest"] = name(forecast.longest);
  out["read_bytes_per_second"] = forecast.read_rate;
  out["assumes"] = "the disk writes as fast as a thread has just read the checkpoint";
  return out;
}

// Appends a member to the text of a JSON object: parsing a plan of millions of chunks would take
// several times the memory.
std::string append_member(std::string text, std::string_view key, std::string_view value) {
  text.resize(text.rfind('\n', text.rfind('}')));
  ((text += ",\n \"") += key) += "\": ";
  for (char one : value) {
    text += one;
    if (one == '\n') text += ' ';
  }
  return text + "\n}";
}

}  // namespace

std::string estimate_to_json(const Checkpoint& checkpoint, const Plan& plan,
                             const StepsEstimate& outlook) {
  using Json = nlohmann::ordered_json;
  Json explain = {{"steps", outlook.steps},
                  {"format", outlook.format},
                  {"tensors", outlook.tensors},
                  {"tiles_kept", outlook.tiles_kept},
                  {"tiles_made", outlook.tiles_made},
                  {"jobs", outlook.jobs},
                  {"out_of_range", outlook.out_of_range},
                  {"of_other_ranks", outlook.of_other_ranks},
                  {"bytes_read", outlook.bytes_read},
                  {"bytes_written", outlook.bytes_written},
                  {"program", outlook.program_hash},
                  {"memory", outlook.forecast.memory},
                  {"decoded_items", outlook.forecast.decoded_items},
                  {"decoded_on_disk", outlook.forecast.decoded_on_disk},
                  {"predicted", predicted_json(outlook.forecast)}};
  return append_member(plan_to_json(checkpoint, plan), "explain",
                       explain.dump(1, ' ', false, Json::error_handler_t::replace));
}

std::string estimate_to_json(const Checkpoint& checkpoint, const Plan& plan,
                             const Result<RepairEstimate>& outlook) {
  using Json = nlohmann::ordered_json;
  std::vector<std::string> steps;
  for (const Operation& operation : plan.operations) steps.push_back(operation.text);
  Json explain = {{"steps", steps}, {"summary", summary_text_of(plan)}};
  if (outlook) {
    explain["files_copied"] = outlook->files_copied;
    explain["files_made"] = outlook->files_made;
    explain["tiles_kept"] = outlook->tiles_kept;
    explain["tiles_made"] = outlook->tiles_made;
    explain["bytes_read"] = outlook->bytes_read;
    explain["bytes_written"] = outlook->bytes_written;
    explain["program"] = outlook->program;
    explain["memory"] = outlook->forecast.memory;
    explain["decoded_items"] = outlook->forecast.decoded_items;
    explain["decoded_on_disk"] = outlook->forecast.decoded_on_disk;
    explain["predicted"] = predicted_json(outlook->forecast);
  } else {
    explain["refused"] = outlook.error().message;
  }
  return append_member(plan_to_json(checkpoint, plan), "explain",
                       explain.dump(1, ' ', false, Json::error_handler_t::replace));
}

Result<StepsEstimate> estimate_steps(const Opened& opened, const Plan& plan, std::uint64_t memory,
                                     Progress* progress) {
  SHW_TRY(TargetOfPlan prepared, target_of_plan(opened.checkpoint, plan, progress));
  SHW_CHECK(check_tiles_have_place(plan, *prepared.form.format));
  SHW_TRY(LoweredTarget lowered, lower_target(prepared.all, prepared.form, progress));
  StepsEstimate outlook;
  for (const Operation& operation : plan.operations) outlook.steps.push_back(operation.text);
  for (std::string& words : step_texts(plan)) outlook.steps.push_back(std::move(words));
  outlook.format = prepared.form.format->title;
  outlook.tensors = prepared.all.tensors.size();
  outlook.tiles_made = lowered.made.size();
  for (const OutputTensor& tensor : lowered.outputs.tensors)
    outlook.tiles_kept += tensor.tiles.size();
  outlook.tiles_kept -= std::min(outlook.tiles_kept, outlook.tiles_made);
  for (const LaidOut::File& file : lowered.laid_out.files) outlook.bytes_written += file.size;
  std::uint64_t copied = 0;
  for (const OutputCopy& copy : lowered.laid_out.copies) copied += copy.length;
  outlook.bytes_read = copied;
  for (const ProgramJob& job : lowered.program.jobs) {
    ++outlook.jobs[class_of(lowered.program, job)];
    if (job.source == SourceId::kNone) continue;
    outlook.bytes_read +=
        static_cast<std::uint64_t>(volume(lowered.program.sizes(job)).value_or(0)) *
        size_of(job.from);
  }
  outlook.out_of_range = lossy_casts(lowered.program);
  SHW_TRY(outlook.of_other_ranks,
          differing_entries_left_out(*opened.checkpoint, prepared.all.dropped, progress));
  outlook.program_hash = to_hex(shw::hash_of(lowered.program));
  SHW_TRY(outlook.forecast, forecast(lowered.program, lowered.inputs, copied, memory));
  return outlook;
}

namespace {

// True for errors that writing again does not repair and that a repair could remove, and for files
// that could not be read: the result would lack what they hold.
bool must_be_repaired_before_rewrite(const Finding& finding) {
  if (names_unread_file(finding)) return true;
  const RepairedBy by = rule_of(finding).repaired_by;
  const bool is_converted = find_evidence<std::string>(finding, "convert_to") != nullptr;
  return finding.severity == Severity::kError && !is_filled_elements_finding(finding) &&
         !is_converted && !rule_of(finding).survives_rewriting && by != RepairedBy::kNewIndex &&
         by != RepairedBy::kNewFile;
}

}  // namespace

std::vector<Finding> unrepaired_reasons_in(const Plan& plan) {
  std::vector<Finding> reasons = plan.undecided;
  std::erase_if(reasons,
                [](const Finding& finding) { return !must_be_repaired_before_rewrite(finding); });
  return reasons;
}

Result<std::vector<Finding>> findings_to_repair_first(const Opened& opened,
                                                      std::optional<Depth> depth,
                                                      Progress* progress, Team* team) {
  Opened bare = opened;
  bare.mesh.reset();  // the requested mesh, not the saving one
  SHW_TRY(CheckReport report, check(bare, depth, progress, team));
  std::erase_if(report.findings,
                [](const Finding& finding) { return !must_be_repaired_before_rewrite(finding); });
  return std::move(report.findings);
}

Result<std::vector<Finding>> findings_of_input(const std::string& path, std::optional<Depth> depth,
                                               Progress* progress) {
  Opened opened;
  SHW_TRY(opened.checkpoint, open_requested(path, progress));
  SHW_TRY(CheckReport report, check(opened, depth, progress));
  std::erase_if(report.findings, [](const Finding& finding) {
    return finding.severity == Severity::kInfo && !names_unread_file(finding);
  });
  std::stable_partition(report.findings.begin(), report.findings.end(), [](const Finding& finding) {
    return finding.severity == Severity::kError || names_unread_file(finding);
  });
  return std::move(report.findings);
}

}  // namespace shw::verbs
