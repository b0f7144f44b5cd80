// Tensors that the class of config.json always saves but that are missing.
#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/reference/config_look.h"
#include "core/rules/explained.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// The tensors that those layers have instead.
std::string other_names_text(const ConfigNames& names) {
  if (names.others.empty()) return "";
  return fmt::format(" The folder also has {} that {} does not know ({}).",
                     plural(names.others.size(), "name"), names.architecture,
                     short_list_text(names.others));
}

void add_lost(const ConfigNames& names, const std::vector<std::string>& lost, Severity severity,
              std::string_view why, std::vector<Finding>& findings) {
  if (lost.empty()) return;
  Finding finding{.rule = "config-names", .severity = severity, .subjects = capped(lost)};
  finding.cause = fmt::format(
      "{} that {} saves {} {} missing: transformers initializes {} at random and only logs a "
      "line.{}",
      plural(lost.size(), "tensor"), names.architecture, why, lost.size() == 1 ? "is" : "are",
      lost.size() == 1 ? "it" : "them", other_names_text(names));
  finding.evidence = {{"architecture", names.architecture},
                      {"absent", capped(lost)},
                      {"count", count_of(lost.size())}};
  findings.push_back(std::move(finding));
}

// True if a rule about prefixes or other names has reported the names.
bool is_name_mismatch_reported(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.rule == kWrappedNames.id || finding.rule == kRenamedTensors.id;
  });
}

void report_names_of_other_class(const ConfigNames& names, std::size_t all,
                                 std::vector<Finding>& findings) {
  if (names.unknown_in_each_layer.empty() || is_name_mismatch_reported(findings)) return;
  Finding finding{.rule = "config-names",
                  .severity = Severity::kWarning,
                  .subjects = capped(names.unknown_in_each_layer)};
  finding.cause = fmt::format(
      "{} of {} do not belong to {}, and each layer has them ({}): these layers belong to another "
      "class. transformers skips them, with only a line in its log, and the model outputs garbage. "
      "Set architectures in config.json to the class that was saved.",
      human_count(names.unknown_in_each_layer.size()), plural(all, "name"), names.architecture,
      short_list_text(names.unknown_in_each_layer));
  finding.evidence = {{"architecture", names.architecture},
                      {"others", capped(names.unknown_in_each_layer)},
                      {"count", count_of(names.unknown_in_each_layer.size())}};
  findings.push_back(std::move(finding));
}

// Reports missing layers.
void report_no_matching_layer(const ConfigNames& names, std::size_t all,
                              std::vector<Finding>& findings) {
  if (is_name_mismatch_reported(findings)) return;
  Finding finding{
      .rule = "config-names", .severity = Severity::kWarning, .subjects = capped(names.others)};
  finding.cause = fmt::format(
      "{} of {} do not belong to {} ({}), and none of its layers is here under its name. "
      "transformers finds no weights for its layers and initializes them at random, with only a "
      "line in its log.",
      human_count(names.others.size()), plural(all, "name"), names.architecture,
      short_list_text(names.others));
  finding.evidence = {{"architecture", names.architecture},
                      {"others", capped(names.others)},
                      {"count", count_of(names.others.size())}};
  findings.push_back(std::move(finding));
}

void find_config_names(const Facts& facts, std::vector<Finding>& findings) {
  if (!facts.config_fit) return;
  auto names = names_of_config(facts.checkpoint, facts.progress);
  if (!names) return;
  if (names->has_no_layer)
    return report_no_matching_layer(*names, facts.checkpoint.tensor_count(), findings);
  report_names_of_other_class(*names, facts.checkpoint.tensor_count(), findings);
  const auto told = explained_by(findings, kMissingKey.id);
  std::erase_if(names->incomplete, [&](const std::string& name) { return told.contains(name); });
  std::erase_if(names->absent, [&](const std::string& name) { return told.contains(name); });
  if (const auto& head = facts.config_fit->missing_head) std::erase(names->absent, *head);
  if (!unmet_config_claims_of_folder(facts.checkpoint, facts.progress).absent_parts.empty())
    names->absent.clear();
  add_lost(*names, names->incomplete, Severity::kError, "together with others of this folder",
           findings);
  add_lost(*names, names->absent, Severity::kWarning, "in any case", findings);
}

}  // namespace

const Rule kConfigNames = {
    .id = "config-names",
    .depth = Depth::kMetadata,
    .title = "A weight that the config.json model class needs is missing",
    .teaches =
        "config.json names a transformers class, and each class saves a known set of tensors; "
        "Shardwright includes that list. If every name in the folder belongs to the class but some "
        "of its names are missing, those tensors were lost: q, k, v and o of an attention come "
        "together, and so do the norms of a layer. transformers then loads random numbers instead. "
        "If the folder has a name that the class does not have, nothing is reported: it may be the "
        "missing tensor under another name. Classes with custom code (auto_map) are not checked.",
    .lesson = {.drawing = R"(
  config.json               model.safetensors
  "LlamaForCausalLM"        model.layers.0.self_attn.q_proj.weight
                            model.layers.0.self_attn.v_proj.weight
                            k_proj is made up
)",
               .remedy = "Save or download the missing tensors again. If they were removed on "
                         "purpose, set architectures in config.json to a class without them.",
               .link = ""},
    .words = {.text = "not there"},
    .outcome = RunOutcome::kLosesElements,
    .subjects = SubjectKind::kAbsentTensors,
    .survives_rewriting = true,
    .run = find_config_names,
};

}  // namespace shw
