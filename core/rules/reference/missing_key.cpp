#include <array>
#include <unordered_map>
#include <unordered_set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/states/optimizer_states.h"
#include "core/rules/explained.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// Parts that wrappers insert anywhere into names.
constexpr std::array<std::string_view, 4> kWrappers = {"module", "_orig_mod", "model",
                                                       "_checkpoint_wrapped_module"};

// The name without the parts of wrappers: "layers.0.w" for "model.module.layers.0.w".
std::string name_without_wrappers(std::string_view fqn) {
  std::string out;
  while (!fqn.empty()) {
    std::size_t dot = fqn.find('.');
    std::string_view part = fqn.substr(0, dot);
    fqn = dot == std::string_view::npos ? std::string_view{} : fqn.substr(dot + 1);
    bool wrapper = false;
    for (std::string_view other : kWrappers) wrapper = wrapper || part == other;
    if (wrapper && !fqn.empty()) continue;
    if (!out.empty()) out += '.';
    out += part;
  }
  return out;
}

std::string_view module_and_parameter_name(std::string_view fqn) {
  std::size_t dot = fqn.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return fqn;
  std::size_t before = fqn.rfind('.', dot - 1);
  return before == std::string_view::npos ? fqn : fqn.substr(before + 1);
}

// Tensors of the checkpoint that the spec does not name: candidates for a renamed tensor.
struct Candidates {
  std::unordered_multimap<std::string, TensorId> by_bare, by_suffix;
};

Candidates candidates_of(const Facts& facts) {
  const Checkpoint& checkpoint = facts.checkpoint;
  Candidates out;
  for (TensorId tensor : each_tensor(facts)) {
    std::string_view fqn = checkpoint.fqn(tensor);
    if (facts.spec->find(fqn) != nullptr) continue;
    out.by_bare.emplace(name_without_wrappers(fqn), tensor);
    out.by_suffix.emplace(module_and_parameter_name(fqn), tensor);
  }
  return out;
}

// The saved name of a missing tensor, if it has the same shape and either equals the name without
// wrappers or is the only one with the same ending.
std::string find_likely_saved_name(const Checkpoint& checkpoint, const Candidates& candidates,
                                   const std::string& fqn, const SpecEntry& entry) {
  auto only_one = [&](auto range) -> std::string {
    std::string found;
    for (auto at = range.first; at != range.second; ++at) {
      if (!same(checkpoint.shape(at->second), entry.shape)) continue;
      if (!found.empty()) return "";
      found = checkpoint.fqn(at->second);
    }
    return found;
  };
  std::string found = only_one(candidates.by_bare.equal_range(name_without_wrappers(fqn)));
  if (found.empty())
    found = only_one(candidates.by_suffix.equal_range(std::string(module_and_parameter_name(fqn))));
  return found;
}

void report_objects(std::vector<std::string> objects, std::vector<Finding>& findings) {
  if (objects.empty()) return;
  Finding finding{.rule = "missing-key"};
  finding.cause = short_list_text(objects) + (objects.size() == 1 ? " was" : " were") +
                  " saved as a pickled object where the model expects a tensor: a load puts the "
                  "object there without an error.";
  finding.evidence = {{"saved_as", std::string("object")}, {"count", count_of(objects.size())}};
  finding.subjects = std::move(objects);
  findings.push_back(std::move(finding));
}

// Megatron, NeMo and Megatron-Bridge load checkpoints with and without such keys.
bool is_extra_state_key(std::string_view fqn) {
  return fqn.find("._extra_state") != std::string_view::npos;
}

void report_extra_states(std::vector<std::string> missing, std::vector<Finding>& findings) {
  if (missing.empty()) return;
  Finding finding{.rule = "missing-key", .severity = Severity::kInfo};
  finding.cause = plural(missing.size(), "_extra_state") + (missing.size() == 1 ? " is" : " are") +
                  " expected but missing (" + short_list_text(missing) +
                  "): Transformer Engine keeps FP8 scaling there, and nothing without FP8. No "
                  "weight is missing because of this; only a strict load needs " +
                  (missing.size() == 1 ? "it" : "them") + ".";
  finding.evidence = {{"extra_states", capped(missing)}, {"count", count_of(missing.size())}};
  finding.subjects = std::move(missing);
  findings.push_back(std::move(finding));
}

void find_missing_keys(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.spec == nullptr) return;
  const Checkpoint& checkpoint = facts.checkpoint;
  std::unordered_set<std::string_view> explained = explained_by(findings, kTiedWeights.id);
  NewNames names = new_names(checkpoint, findings);
  // Expected names from a reference use the checkpoint's own names.
  const auto renamed_here = explained_by(findings, kRenamedTensors.id);
  const auto renumbered = explained_by(findings, kLayersRenumbered.id);
  std::unordered_set<std::string_view> objects;
  for (const NonTensorEntry& object : checkpoint.objects()) objects.insert(object.fqn);
  std::optional<Candidates> candidates;
  Finding finding{.rule = "missing-key"};
  std::vector<std::string> as_objects, extra_states, hints, expected;
  std::size_t renamed = 0;
  for (const auto& [fqn, entry] : each_of(facts.spec->entries, facts)) {
    // True if another layer now has the tensor's correct name.
    bool there = names.given.contains(unwrapped_name(fqn)) ||
                 (checkpoint.find(fqn) && !names.left.contains(fqn));
    const bool is_left = renumbered.contains(fqn) && names.left.contains(fqn);
    const bool is_renamed = renamed_here.contains(fqn) && !is_left;
    if (there || explained.contains(fqn) || is_renamed) continue;
    if (objects.contains(fqn)) {
      as_objects.push_back(fqn);
      continue;
    }
    if (!candidates) candidates = candidates_of(facts);
    std::string hint = find_likely_saved_name(checkpoint, *candidates, fqn, entry);
    if (hint.empty() && is_extra_state_key(fqn)) {
      extra_states.push_back(fqn);
      continue;
    }
    renamed += hint.empty() ? 0 : 1;
    if (!hint.empty() && hints.size() < kMaxEvidence) hints.push_back(fqn + " <- " + hint);
    if (expected.size() < kMaxEvidence) expected.push_back(to_text(entry.shape));
    finding.subjects.push_back(fqn);
  }
  report_objects(std::move(as_objects), findings);
  report_extra_states(std::move(extra_states), findings);
  if (finding.subjects.empty()) return;
  finding.cause = "The model expects " + plural(finding.subjects.size(), "tensor") +
                  " that the checkpoint does not have: " + short_list_text(finding.subjects) + ".";
  if (renamed != 0) {
    finding.cause += " " + plural(renamed, "tensor") + " of the same shape " +
                     (renamed == 1 ? "is" : "are") + " there under another name (" + hints.front() +
                     ").";
  }
  finding.evidence = {{"count", count_of(finding.subjects.size())},
                      {"expected_shapes", expected},
                      {"renamed", hints},
                      {"renamed_count", count_of(renamed)}};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kMissingKey = {
    .id = "missing-key",
    .depth = Depth::kMetadata,
    .title = "The model expects a tensor that is not in the checkpoint",
    .teaches =
        "torch loads by name: if the checkpoint does not have a tensor that the model needs, the "
        "load fails with 'Missing key in checkpoint state_dict'. Often it is there under another "
        "name: a wrapper (DDP, torch.compile, FSDP) added 'module.' or '_orig_mod.', or the state "
        "dict was saved one level deeper. A saved tensor of the same shape whose name ends the "
        "same is listed. Otherwise the tensor was not saved: compare with an earlier step.",
    .lesson = {.drawing = R"(
  the model asks for          the checkpoint has
  layers.0.weight    ──────   module.layers.0.weight   a wrapper's prefix
  layers.1.weight    ──────   module.layers.1.weight
  lm_head.weight     ──?      -                        not saved (tied?)
)",
               .remedy = "If one prefix explains all names, strip or add it in the loader. Take a "
                         "tensor that is missing under every name from another step.",
               .link = "https://github.com/pytorch/pytorch/issues/143972"},
    .words = {.text = "will not load"},
    .outcome = RunOutcome::kLoadFails,
    .subjects = SubjectKind::kAbsentTensors,
    .run = find_missing_keys,
};

}  // namespace shw
