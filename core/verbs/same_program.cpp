#include "core/verbs/same_program.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/combine/shifted_norms.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"
#include "core/verbs/mapped_reference.h"
#include "core/verbs/mapped_view.h"

namespace shw::verbs {
namespace {

// What the rules say of tensors that differ from a reference of the same names. Another step
// differs too, which is an info: nobody wants every byte of both read for that.
bool says_less(const Finding& finding) {
  static const std::array<std::string_view, 10> kSaysLess = {
      kBlocksPermuted.id,   kContentMoved.id, kDiffersFromReference.id, kExpertsExchanged.id,
      kLayersRenumbered.id, kTransposed.id,   kTilesExchanged.id,       kRouterRows.id,
      kShapeMismatch.id,    kNormsShifted.id};
  return std::find(kSaysLess.begin(), kSaysLess.end(), finding.rule) != kSaysLess.end();
}

// Training moves more than the norms.
bool is_of_norms_alone(const Finding& finding) {
  return finding.rule == kDiffersFromReference.id && !finding.subjects.empty() &&
         std::all_of(finding.subjects.begin(), finding.subjects.end(), is_norm_weight);
}

// The program in whose layout rows are joined, or taken apart.
std::string other_program(const std::string& world) {
  return world == "hf" ? "torch_dist" : "hf";
}

bool is_said(const MapOptions& mapping, std::string_view name) {
  return std::any_of(mapping.set.begin(), mapping.set.end(),
                     [&](const std::string& one) { return one.starts_with(name); });
}

// What both sides get where nothing says it: a model, for names alone, and a vocabulary without
// padding.
MapOptions with_defaults(const Checkpoint& reference, const ModelFacts& facts, MapOptions mapping) {
  if (!mapping.config.empty()) return mapping;
  if (facts_beside(reference).model_type.empty() && !is_said(mapping, "model="))
    mapping.set.emplace_back("model=llama");
  if (facts.config.contains("vocab_size") || facts.args.contains("vocab_size") ||
      is_said(mapping, "vocab="))
    return mapping;
  for (const TensorId tensor : reference.tensors()) {
    if (reference.fqn(tensor).ends_with("embedding.word_embeddings.weight"))
      mapping.set.push_back("vocab=" + std::to_string(reference.shape(tensor).front()));
  }
  return mapping;
}

bool covers(const std::set<std::string_view>& known, const std::vector<std::string>& subjects) {
  return !subjects.empty() &&
         std::all_of(subjects.begin(), subjects.end(),
                     [&](const std::string& one) { return known.contains(one); });
}

bool has(const Finding& finding, std::string_view key) {
  return std::any_of(finding.evidence.begin(), finding.evidence.end(),
                     [&](const auto& entry) { return entry.first == key; });
}

// A repair that the rules found stays.
void keep_repair(const Checkpoint& checkpoint, Finding& old, std::vector<Finding>& named) {
  for (Finding& finding : named) {
    if (!finding.diagnoses.empty()) continue;
    for (const Diagnosis& diagnosis : old.diagnoses) {
      const std::string fqn(checkpoint.fqn(tensor_of(diagnosis)));
      if (std::find(finding.subjects.begin(), finding.subjects.end(), fqn) !=
          finding.subjects.end())
        finding.diagnoses.push_back(diagnosis);
    }
    if (!finding.diagnoses.empty()) finding.remedy = old.remedy;
  }
}

}  // namespace

void name_wrong_conversions(const std::shared_ptr<const Checkpoint>& checkpoint,
                            const std::shared_ptr<const Checkpoint>& reference,
                            const MapOptions& mapping, std::optional<Depth> depth,
                            CheckReport& report, Progress* progress) {
  if (std::none_of(report.findings.begin(), report.findings.end(), [](const Finding& finding) {
        return says_less(finding) &&
               (finding.severity > Severity::kInfo || is_of_norms_alone(finding));
      }))
    return;
  const ModelFacts facts = facts_of_pair(*checkpoint, *reference);
  const std::string world = world_of(named_shapes(*reference), facts);
  if (world.empty() || world != world_of(named_shapes(*checkpoint), facts)) return;
  const MapOptions said = with_defaults(*reference, facts, mapping);
  const auto view = mapped_view(reference, other_program(world), said, progress);
  if (!view) return;
  auto judged = judge_through_map(checkpoint, view->checkpoint, said, depth, progress);
  if (!judged || !*judged || !(*judged)->is_compared) return;
  std::vector<Finding> named;
  std::set<std::string_view> subjects;
  for (Finding& finding : (*judged)->findings) {
    if (has(finding, "mistake"))
      named.push_back(std::move(finding));
    else if (has(finding, "count") && finding.severity == Severity::kInfo)
      return;  // other weights, or another step: what looks like a mistake is none
  }
  for (const Finding& finding : named)
    subjects.insert(finding.subjects.begin(), finding.subjects.end());
  std::erase_if(report.findings, [&](Finding& old) {
    if (!says_less(old) || !covers(subjects, old.subjects)) return false;
    keep_repair(*checkpoint, old, named);
    return true;
  });
  add_findings(*checkpoint, std::move(named), report);
}

}  // namespace shw::verbs
