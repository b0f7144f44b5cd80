#include "core/verbs/written_as.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/words.h"
#include "core/io/path_suffix.h"
#include "core/model/unread_files.h"
#include "core/repair/plan/target_of_plan.h"
#include "core/verbs/conversion.h"
#include "core/verbs/trainer_optimizer.h"

namespace shw::verbs {
namespace {

constexpr std::string_view kMergedWord = "merged";

}  // namespace

const std::vector<std::string>& convert_targets() {
  static const std::vector<std::string> targets{
      "dcp",        "safetensors", "torch",        "torch-checkpointing", "hf",
      "torch_dist", "titan",       "fsdp_dtensor", kTrainerOptimizer};
  return targets;
}

Result<std::string> convert_target(const std::string& word) {
  const std::vector<std::string>& targets = convert_targets();
  std::string target(format_alias(word));
  if (std::ranges::find(targets, target) != targets.end()) return target;
  return fail(ErrorKind::kUsage, "unknown output format \"" + word + "\"", {},
              "write one of " + short_list_text(targets, targets.size()));
}

std::string suffix_of_result(const std::string& opened_as, const std::string& to) {
  constexpr std::array<std::pair<std::string_view, const char*>, 6> kSuffixes{
      {{"adapter", "-adapter"},
       {kMergedWord, "-merged"},
       {"average", "-averaged"},
       {"delta-to", "-delta"},
       {"applied", "-applied"},
       {"dequantised", "-dequantised"}}};
  if (const auto end = parse_computed_suffix(opened_as)) {
    if (end->word == "quantised") return "-" + end->numbers;  // the scheme
    const auto* row =
        std::ranges::find(kSuffixes, end->word, [](const auto& one) { return one.first; });
    if (row != kSuffixes.end()) return row->second;
  }
  return "-" + to;
}

Result<std::vector<std::string>> check_other_inputs(const std::string& opened_as,
                                                    std::optional<Depth> depth,
                                                    Progress* progress) {
  std::vector<std::string> warnings;
  for (auto end = parse_computed_suffix(opened_as); end; end = parse_computed_suffix(end->before)) {
    std::optional<Depth> of_input = depth;
    if (end->word == kMergedWord && !depth) of_input = Depth::kData;  // adapters are small
    if (end->word == kTrainerOptimizer) continue;                     // a list of names
    for (const std::string& path : end->others) {
      SHW_TRY(const auto findings, findings_of_input(path, of_input, progress));
      for (const Finding& finding : findings) {
        if (finding.severity == Severity::kError || names_unread_file(finding))
          return fail(ErrorKind::kUnsupported,
                      "nothing was written: " + path + " is broken (" + finding.rule +
                          "): " + finding.cause,
                      {}, "Repair it first: `shardwright check` shows what is wrong.");
        warnings.push_back(finding.rule + "  " + path + ": " + finding.cause);
      }
    }
  }
  return warnings;
}

Status refuse_damaged_checkpoint(const std::vector<Finding>& findings,
                                 const std::string& checkpoint) {
  if (findings.empty()) return {};
  std::vector<std::string> rules;
  for (const Finding& finding : findings) {
    if (std::ranges::find(rules, finding.rule) == rules.end()) rules.push_back(finding.rule);
  }
  return fail(ErrorKind::kUnsupported,
              "nothing was written: the checkpoint is broken (" + short_list_text(rules) +
                  "), and a newly written copy would hide the damage: " + findings.front().cause,
              {checkpoint}, "Repair it first: `shardwright check` shows what is wrong.");
}

Result<WriteAsPlan> plan_to_write_as(const Opened& opened, const std::string& opened_as,
                                     const OutputForm& wanted, std::optional<Depth> depth,
                                     Progress* progress) {
  WriteAsPlan out;
  VerbOptions said;
  said.checkpoint = opened_as;
  said.to = wanted.to;
  said.dtype = wanted.dtype;
  said.weights_only = wanted.weights_only;
  if (said.to.empty()) {
    SHW_TRY(said.to, source_format_or_safetensors(opened_as, progress));
  } else {
    SHW_TRY(said.to, convert_target(said.to));
  }
  SHW_TRY(const auto wrong, findings_to_repair_first(opened, depth, progress));
  SHW_CHECK(refuse_damaged_checkpoint(wrong, opened_as));
  SHW_TRY(out.notes, check_other_inputs(opened_as, depth, progress));
  SHW_TRY(ConvertPlan made, plan_conversion(opened, said, {}, progress));
  std::ranges::move(made.notes, std::back_inserter(out.notes));
  if (!wanted.mesh.empty()) {
    said.then = {"reshard:" + wanted.mesh};
    SHW_TRY(auto remarks, add_steps(opened, said, made.plan, progress));
    std::ranges::move(remarks, std::back_inserter(out.notes));
  }
  out.plan = std::move(made.plan);
  out.suffix = suffix_of_result(opened_as, said.to);
  return out;
}

}  // namespace shw::verbs
