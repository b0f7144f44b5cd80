// --then: steps after the repairs, in the same pass over the bytes.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/base/json.h"
#include "core/base/spelling.h"
#include "core/formats/table.h"
#include "core/io/read_whole.h"
#include "core/repair/plan/target_of_plan.h"
#include "core/transform/json.h"
#include "core/transform/packed_tensor.h"
#include "core/transform/tilings.h"
#include "core/verbs/convert_plan.h"
#include "core/verbs/transforms.h"

namespace shw::verbs {
namespace {

constexpr const char* kForms =
    "write reshard:dp=8,tp=2, convert:dcp|safetensors|torch, cast:bfloat16, drop:PATTERN, or "
    "a step as JSON: '{\"step\": \"rename\", \"from\": \"a\", \"to\": \"b\"}'";

// A tensor after the plan's steps so far.
struct PlannedTensorForm {
  std::string fqn;
  std::size_t ndim = 0;
  Dtype dtype = Dtype::kUnknown;
};

Result<std::vector<PlannedTensorForm>> tensors_after(const Opened& opened, const Plan& plan,
                                                     Progress* progress) {
  SHW_TRY(const TargetOfPlan target, target_of_plan(opened.checkpoint, plan, progress));
  const Checkpoint& source = *opened.checkpoint;
  std::vector<PlannedTensorForm> left;
  for (const TargetEntry& entry : target.all.tensors) {
    if (entry.made == nullptr) {
      left.push_back(
          {entry.fqn, source.shape(entry.as_saved).size(), source.dtype(entry.as_saved)});
      continue;
    }
    const TargetTensor tensor = entry.made->unpacked();
    left.push_back({entry.fqn, tensor.shape.size(), tensor.dtype});
  }
  return left;
}

Result<PlacementRules> placement_rules(const VerbOptions& options, const Mesh& mesh) {
  if (options.placements.empty()) return PlacementRules{};
  SHW_TRY(const std::string text, read_whole_text(options.placements));
  return placement_rules_from_json(text, options.placements, mesh);
}

// Adds one step per group of tensors with equal placements, and a note for each pattern that
// matches no tensor. kUsage if no pattern does: all tensors would be split by default.
Status add_reshard(const std::vector<PlannedTensorForm>& tensors, const Mesh& mesh,
                   const VerbOptions& options, Plan& plan, std::vector<std::string>& notes) {
  SHW_TRY(const PlacementRules rules, placement_rules(options, mesh));
  std::size_t unmatched = 0;
  for (const auto& rule : rules.rules) {
    const std::string& pattern = rule.first;
    if (std::any_of(tensors.begin(), tensors.end(), [&](const PlannedTensorForm& tensor) {
          return matches_pattern(pattern, tensor.fqn);
        }))
      continue;
    ++unmatched;
    notes.push_back(
        fmt::format("{}: the pattern \"{}\" matches no tensor", options.placements, pattern));
  }
  if (unmatched != 0 && unmatched == rules.rules.size())
    return fail(ErrorKind::kUsage, "no pattern of the file matches a tensor", {options.placements},
                "`shardwright ls CHECKPOINT` lists the names.");
  std::map<std::string, std::size_t> step_of;  // by placements
  for (const PlannedTensorForm& tensor : tensors) {
    auto placements = placements_by_rules(rules, tensor.fqn, tensor.ndim, mesh);
    auto [found, is_new] = step_of.try_emplace(to_text(placements), plan.steps.size());
    if (is_new) plan.steps.emplace_back(ReshardStep{{}, mesh, std::move(placements)});
    std::get<ReshardStep>(plan.steps[found->second]).tensors.push_back(tensor.fqn);
  }
  return {};
}

// Casts only weights: optimizer states and step counters stay.
Result<std::string> add_cast(const Opened& opened, const std::vector<PlannedTensorForm>& tensors,
                             const std::string& dtype, Plan& plan) {
  std::vector<CastCandidate> candidates;
  for (const PlannedTensorForm& tensor : tensors) candidates.push_back({tensor.fqn, tensor.dtype});
  SHW_TRY(CastChoice choice, choose_casts(*opened.checkpoint, candidates, "--then cast:", dtype));
  if (!choice.tensors.empty())
    plan.steps.emplace_back(CastStep{std::move(choice.tensors), choice.to});
  return std::move(choice.note);
}

Status add_json(const std::string& text, Plan& plan) {
  const auto read = parse_json<EditedJson::Json>(text);
  if (read.tree.is_discarded()) return fail(ErrorKind::kUsage, json_error_text(read), {"--then"});
  EditedJson in;
  Step step = read_step(in, read.tree);
  if (!in.ok()) return fail(ErrorKind::kUsage, in.error(), {"--then"}, kForms);
  plan.steps.push_back(std::move(step));
  return {};
}

// The format of the last conversion, otherwise the plan's; null: the format that is read.
const Format* last_format(const std::vector<std::string>& then, const Plan& plan) {
  constexpr std::string_view kConvert = "convert:";
  std::string name = plan.format;
  for (const std::string& one : then) {
    if (one.starts_with(kConvert)) name = one.substr(kConvert.size());
  }
  return name.empty() ? nullptr : format_named(name);
}

}  // namespace

Result<Plan> plan_reshard(const Opened& opened, const VerbOptions& options,
                          std::vector<std::string>* notes) {
  if (options.mesh.empty())
    return fail(ErrorKind::kUsage, "reshard needs a --mesh", {},
                "write axes as name=size, outermost first: --mesh dp=8,tp=2");
  SHW_TRY(const Mesh mesh, parse_mesh(options.mesh));
  const Checkpoint& checkpoint = *opened.checkpoint;
  std::vector<PlannedTensorForm> tensors;
  for (TensorId tensor : checkpoint.tensors())
    tensors.push_back({std::string(checkpoint.fqn(tensor)), checkpoint.shape(tensor).size(),
                       checkpoint.dtype(tensor)});
  Plan plan = empty_plan_for(opened);
  // A format that stores tensors in one piece cannot store tiles.
  if (checkpoint.format().traits.has_one_piece_per_tensor) plan.format = "dcp";
  std::vector<std::string> made;
  SHW_CHECK(add_reshard(tensors, mesh, options, plan, made));
  if (notes != nullptr) *notes = std::move(made);
  return plan;
}

Result<std::vector<std::string>> add_steps(const Opened& opened, const VerbOptions& options,
                                           Plan& plan, Progress* progress) {
  std::vector<std::string> remarks;
  const Format* written = last_format(options.then, plan);
  const Format& saved = opened.checkpoint->format();
  for (const std::string& one : options.then) {
    const std::size_t colon = one.find(':');
    const std::string verb = one.substr(0, colon);
    const std::string what = colon == std::string::npos ? "" : one.substr(colon + 1);
    if (one.starts_with('{')) {
      SHW_CHECK(add_json(one, plan));
    } else if (verb == "convert") {
      SHW_CHECK(set_output_format(what, options.shard_bytes, plan));
    } else if (verb == "drop" && !what.empty()) {
      plan.steps.emplace_back(DropStep{{what}});
    } else if (verb == "cast") {
      SHW_TRY(const auto tensors, tensors_after(opened, plan, progress));
      SHW_TRY(std::string note, add_cast(opened, tensors, what, plan));
      remarks.push_back(std::move(note));
    } else if (verb == "reshard") {
      SHW_TRY(const Mesh mesh, parse_mesh(what));
      if (written != nullptr && written->traits.has_one_piece_per_tensor) {
        remarks.push_back(
            fmt::format("{} is left out: {} stores every tensor whole", one, written->title));
        continue;
      }
      if (written == nullptr && saved.traits.has_one_piece_per_tensor) plan.format = "dcp";
      SHW_TRY(const auto tensors, tensors_after(opened, plan, progress));
      SHW_CHECK(add_reshard(tensors, mesh, options, plan, remarks));
    } else {
      return fail(ErrorKind::kUsage, "--then has an unknown step \"" + one + "\"", {}, kForms);
    }
  }
  return remarks;
}

}  // namespace shw::verbs
