#include "core/verbs/transforms.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/words.h"
#include "core/formats/open.h"
#include "core/formats/replicas.h"
#include "core/io/read_whole.h"
#include "core/io/store.h"
#include "core/repair/plan/kept_plan.h"
#include "core/repair/plan/plan.h"
#include "core/repair/plan/plan_fingerprint.h"
#include "core/repair/plan/target_of_plan.h"
#include "core/repair/run/carry_out.h"
#include "core/repair/run/make_target.h"
#include "core/repair/run/outlook_words.h"
#include "core/repair/run/request.h"
#include "core/rules/rules.h"
#include "core/tensor/cast.h"
#include "core/transform/tilings.h"

namespace shw::verbs {
namespace {

Result<std::string> text_of_file(const std::string& path) {
  SHW_TRY(auto source, open_file(path, path));
  return read_whole_text(*source);
}

StepPlan plan_for(const Opened& opened) {
  StepPlan plan;
  const auto& directory = opened.checkpoint->directory();
  plan.checkpoint = directory == nullptr ? std::string() : directory->name();
  plan.fingerprint = fingerprint(*opened.checkpoint);
  return plan;
}

// The class of a job, which determines its cost.
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
  return reads_in_rows(program, job) ? "rows" : "strided";
}

// One line per cast that cannot represent all values.
std::vector<std::string> lossy_casts(const Program& program) {
  std::set<std::pair<Dtype, Dtype>> casts;
  for (const ProgramJob& job : program.jobs) {
    if (job.op != ElementOp::kCast && job.op != ElementOp::kScale) continue;
    Dtype now = job.op == ElementOp::kScale ? Dtype::kFloat32 : job.from;
    auto go_to = [&](Dtype to) {
      if (!holds_all_of(to, now)) casts.emplace(now, to);
      now = to;
    };
    for (Dtype to : job.via) {
      if (to != Dtype::kUnknown) go_to(to);
    }
    go_to(job.to);
  }
  std::vector<std::string> words;
  for (const auto& [from, to] : casts)
    words.push_back(fmt::format("{} to {}: {}; the certificate says how many of each tensor",
                                name(from), name(to), out_of_range_in_words(to)));
  return words;
}

std::vector<std::string> words_of(const StepPlan& plan) {
  std::vector<std::string> words;
  for (const Step& step : plan.steps) words.push_back(to_text(step));
  if (!plan.format.empty()) words.push_back("written as " + plan.format);
  return words;
}

}  // namespace

Result<StepPlan> plan_reshard(const Opened& opened, const VerbOptions& verb_options) {
  if (verb_options.mesh.empty())
    return fail(ErrorKind::kUsage, "reshard needs a --mesh", {},
                "write axes as name=size, outermost first: --mesh dp=8,tp=2");
  SHW_TRY(Mesh mesh, parse_mesh(verb_options.mesh));
  PlacementRules rules;
  if (!verb_options.placements.empty()) {
    SHW_TRY(std::string text, text_of_file(verb_options.placements));
    SHW_TRY(rules, placement_rules_from_json(text, verb_options.placements, mesh));
  }
  const Checkpoint& checkpoint = *opened.checkpoint;
  std::map<std::string, std::size_t> step_of;  // by placements
  StepPlan plan = plan_for(opened);
  // Formats with one piece per tensor have no chunks.
  if (checkpoint.format().traits.one_piece) plan.format = "dcp";
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    std::string fqn(checkpoint.fqn(TensorId{t}));
    auto placements = placements_of(rules, fqn, checkpoint.shape(TensorId{t}).size(), mesh);
    auto [found, is_new] = step_of.try_emplace(to_text(placements), plan.steps.size());
    if (is_new) plan.steps.emplace_back(ReshardStep{{}, mesh, std::move(placements)});
    std::get<ReshardStep>(plan.steps[found->second]).tensors.push_back(std::move(fqn));
  }
  return plan;
}

namespace {

// Relative paths in a plan refer to the plan's folder, wherever the plan is executed or the
// certificate is read.
Status find_beside(const std::string& path, StepPlan& plan) {
  auto is_relative = [](const StepPlan::Input& input) {
    return !input.checkpoint.starts_with('/');
  };
  if (std::none_of(plan.inputs.begin(), plan.inputs.end(), is_relative)) return {};
  SHW_TRY(std::string file, posix_store().resolved(path));
  const std::string folder = file.substr(0, file.rfind('/') + 1);
  for (StepPlan::Input& input : plan.inputs) {
    if (!is_relative(input)) continue;
    const std::string said = std::exchange(input.checkpoint, folder + input.checkpoint);
    input.original_path = said;
    for (Step& step : plan.steps) {
      auto* fill = std::get_if<FillStep>(&step);
      if (fill != nullptr && fill->from_checkpoint == said)
        fill->from_checkpoint = input.checkpoint;
    }
  }
  return {};
}

}  // namespace

Result<std::optional<StepPlan>> read_step_plan(const std::string& path) {
  SHW_TRY(std::string text, text_of_file(path));
  if (!is_step_plan(text)) return std::optional<StepPlan>();
  SHW_TRY(StepPlan plan, steps_from_json(text, path));
  SHW_CHECK(find_beside(path, plan));
  return std::optional<StepPlan>(std::move(plan));
}

namespace {

nlohmann::ordered_json predicted_json(const Forecast& forecast) {
  nlohmann::ordered_json out;
  for (std::size_t i = 0; i < kStages; ++i)
    out[std::string(name(static_cast<Stage>(i)))] = forecast.seconds[i];
  out["total"] = forecast.total;
  out["longest"] = name(forecast.longest);
  out["read_bytes_per_second"] = forecast.read_rate;
  out["assumes"] = "the disk takes bytes as fast as a thread has just read the checkpoint";
  return out;
}

// Appends a member to the text of a JSON object: parsing a plan of millions of chunks would take
// several times the memory.
std::string with_last_member(std::string text, std::string_view key, std::string_view value) {
  text.resize(text.rfind('\n', text.rfind('}')));
  ((text += ",\n \"") += key) += "\": ";
  for (char one : value) {
    text += one;
    if (one == '\n') text += ' ';
  }
  return text + "\n}";
}

}  // namespace

std::string outlook_to_json(const StepPlan& plan, const StepOutlook& outlook) {
  using Json = nlohmann::ordered_json;
  Json out = Json::parse(steps_to_json(plan));
  out["explain"] = {{"steps", outlook.steps},
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
  return out.dump(1, ' ', false, Json::error_handler_t::replace);
}

std::string outlook_to_json(const Checkpoint& checkpoint, const Plan& plan,
                            const Result<RepairOutlook>& outlook) {
  using Json = nlohmann::ordered_json;
  std::vector<std::string> steps;
  for (const Operation& operation : plan.operations) steps.push_back(operation.text);
  Json explain = {{"steps", steps}, {"summary", in_words(plan)}};
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
  return with_last_member(plan_to_json(checkpoint, plan), "explain",
                          explain.dump(1, ' ', false, Json::error_handler_t::replace));
}

namespace {

bool is_cut(const RetileStep& step) {
  return step.tiles.size() > 1;
}

bool is_cut(const ReshardStep& step) {
  for (std::size_t axis = 0; axis < step.mesh.axes.size(); ++axis) {
    if (step.mesh.axes[axis].size > 1 && step.placements[axis].kind != Placement::Kind::kReplicate)
      return true;
  }
  return false;
}

// The tensors that a step splits; null if it splits none.
const Patterns* cut_by(const Step& step) {
  const auto* retile = std::get_if<RetileStep>(&step);
  if (retile != nullptr && is_cut(*retile)) return &retile->tensors;
  const auto* reshard = std::get_if<ReshardStep>(&step);
  return reshard != nullptr && is_cut(*reshard) ? &reshard->tensors : nullptr;
}

// Rejects formats that would silently write whole tensors instead of chunks.
Status check_tiles_have_place(const StepPlan& plan, const Format& format) {
  if (!format.traits.one_piece) return {};
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Patterns* tensors = cut_by(plan.steps[i]);
    if (tensors == nullptr) continue;
    return fail(
        ErrorKind::kUsage,
        fmt::format("step {} ({}): {} would be cut into tiles, and {} holds every tensor in "
                    "one piece",
                    i + 1, name(plan.steps[i]), some_of(*tensors), format.title),
        {}, "write it as DCP, as the verb reshard does: \"target\": {\"format\": \"dcp\"}");
  }
  return {};
}

}  // namespace

Result<StepOutlook> look_ahead(const Opened& opened, const StepPlan& plan, std::uint64_t memory,
                               Progress* progress) {
  SHW_TRY(TargetOfPlan prepared, target_of_plan(opened.checkpoint, plan, progress));
  SHW_CHECK(check_tiles_have_place(plan, *prepared.form.format));
  SHW_TRY(LoweredTarget lowered, lower_target(prepared.all, prepared.form, progress));
  StepOutlook outlook;
  outlook.steps = words_of(plan);
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
  SHW_TRY(outlook.of_other_ranks, left_behind(*opened.checkpoint, prepared.all.dropped, progress));
  outlook.program_hash = to_hex(shw::hash_of(lowered.program));
  SHW_TRY(outlook.forecast, forecast(lowered.program, lowered.inputs, copied, memory));
  return outlook;
}

Result<RepairResult> take(Store& store, const Opened& opened, const StepPlan& plan,
                          const ApplyOptions& options, Progress* progress) {
  if (options.in_place)
    return fail(ErrorKind::kUsage,
                "steps, and what --fill puts in the place of lost files, go into a new folder, "
                "not in place: leave --in-place away");
  SHW_TRY(TargetOfPlan prepared, target_of_plan(opened.checkpoint, plan, progress));
  SHW_CHECK(check_tiles_have_place(plan, *prepared.form.format));
  TargetRun run;
  SHW_TRY(run.form.out, output_of(store, *opened.checkpoint, options));
  run.form.format = prepared.form.format;
  run.form.shard_bytes = prepared.form.shard_bytes;
  run.steps = words_of(plan);
  // The user's plan may be for any checkpoint; the stored one is for this checkpoint.
  StepPlan kept = plan;
  kept.steps = prepared.steps;
  kept.fingerprint = fingerprint(*opened.checkpoint);
  for (std::size_t i = 0; i < kept.inputs.size(); ++i)
    kept.inputs[i].fingerprint = fingerprint(*prepared.all.inputs[i + 1]);
  run.plan = keep_plan(steps_to_json(kept));
  run.memory = options.memory;
  run.device = options.device;
  run.partial = options.partial;
  run.team = options.team;
  run.integrity = options.integrity;
  run.weights_only = plan.weights_only;
  std::string said =
      options.checkpoint.empty() ? opened.checkpoint->directory()->name() : options.checkpoint;
  SHW_TRY(run.request,
          request_to_json(store, kStepsVerb, steps_to_json(plan), said, options.integrity));
  return make_target(store, prepared.all, run, progress);
}

Result<RepairResult> take(const Opened& opened, const StepPlan& plan, const ApplyOptions& options,
                          Progress* progress) {
  return take(posix_store(), opened, plan, options, progress);
}

Result<std::vector<Finding>> reasons_to_repair_first(const Opened& opened,
                                                     std::optional<Depth> depth, Progress* progress,
                                                     Team* team) {
  Opened bare = opened;
  bare.mesh.reset();  // the requested mesh, not the saving one
  SHW_TRY(CheckReport report, check(bare, depth, progress, team));
  std::erase_if(report.findings, [](const Finding& finding) {
    // Writing creates a valid index, but copies bytes unchanged.
    const MendedBy by = rule_of(finding).mended_by;
    return finding.severity != Severity::kError || is_only_filled(finding) ||
           rule_of(finding).outlasts_writing || by == MendedBy::kNewIndex ||
           by == MendedBy::kNewFile;
  });
  return std::move(report.findings);
}

}  // namespace shw::verbs
