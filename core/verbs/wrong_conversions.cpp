#include "core/verbs/wrong_conversions.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/combine/shifted_norms.h"
#include "core/maps/guessed_heads.h"
#include "core/model/evidence.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"
#include "core/verbs/mapped_reference.h"
#include "core/verbs/mapped_view.h"

namespace shw::verbs {
namespace {

// True for findings about differences to a reference with the same names that name no conversion
// mistake. An info for another training step is not enough reason to read every byte of both.
bool is_less_specific(const Finding& finding) {
  static const std::array<std::string_view, 10> kLessSpecificRules = {
      kBlocksPermuted.id,   kContentMoved.id, kDiffersFromReference.id, kExpertsExchanged.id,
      kLayersRenumbered.id, kTransposed.id,   kTilesExchanged.id,       kRouterRows.id,
      kShapeMismatch.id,    kNormsShifted.id};
  return std::find(kLessSpecificRules.begin(), kLessSpecificRules.end(), finding.rule) !=
         kLessSpecificRules.end();
}

// True if only norms differ: training would change other weights too.
bool is_of_norms_alone(const Finding& finding) {
  return finding.rule == kDiffersFromReference.id && !finding.subjects.empty() &&
         std::all_of(finding.subjects.begin(), finding.subjects.end(), is_norm_weight);
}

// Another program that joins rows that this one keeps apart, or the reverse.
std::string counterpart_naming_scheme(const std::string& world) {
  return world == "hf" ? "torch_dist" : "hf";
}

bool is_given(const MapOptions& mapping, std::string_view name) {
  return std::any_of(mapping.set.begin(), mapping.set.end(),
                     [&](const std::string& one) { return one.starts_with(name); });
}

// Defaults for unknown values, the same for both sides: a model (only for names) and a vocabulary
// without padding.
MapOptions with_defaults(const Checkpoint& reference, const ModelFacts& facts, MapOptions mapping) {
  if (!mapping.config.empty()) return mapping;
  if (facts_in_folder(reference).model_type.empty() && !is_given(mapping, "model="))
    mapping.set.emplace_back("model=llama");
  if (facts.config.contains("vocab_size") || facts.args.contains("vocab_size") ||
      is_given(mapping, "vocab="))
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

// Keeps a repair that the rules found.
void copy_repair_from_rules(const Checkpoint& checkpoint, Finding& old,
                            std::vector<Finding>& named) {
  for (Finding& finding : named) {
    if (!finding.diagnoses.empty() || finding.remedy) continue;
    for (const Diagnosis& diagnosis : old.diagnoses) {
      const std::string fqn(checkpoint.fqn(tensor_of(diagnosis)));
      if (std::find(finding.subjects.begin(), finding.subjects.end(), fqn) !=
          finding.subjects.end())
        finding.diagnoses.push_back(diagnosis);
    }
    if (!finding.diagnoses.empty()) finding.remedy = old.remedy;
  }
}

struct ComparedPair {
  std::shared_ptr<const Checkpoint> checkpoint, reference;
  std::optional<Depth> depth;
  std::string program;  // of both
};

// nullopt if the two cannot be compared in the names of that program.
std::optional<MappedVerdict> compare_in_naming_scheme(const ComparedPair& pair,
                                                      const std::string& world,
                                                      const MapOptions& said, Progress* progress) {
  const auto view = mapped_view(pair.reference, world, said, progress);
  if (!view) return std::nullopt;
  auto judged = compare_through_map(pair.checkpoint, view->checkpoint, said, pair.depth, progress,
                                    pair.program);
  if (!judged || !*judged || !(*judged)->is_compared) return std::nullopt;
  return std::move(**judged);
}

// Score of a comparison: 2 per tensor with a named mistake, 1 per tensor with moved rows.
std::size_t mistake_score(const MappedVerdict& judged) {
  return 2 * judged.named + judged.unnamed;
}

// True if a finding counts differing values that no known conversion mistake explains.
bool has_unexplained_values(const MappedVerdict& judged) {
  return std::any_of(judged.findings.begin(), judged.findings.end(), [](const Finding& finding) {
    return !has_evidence(finding, "mistake") && has_evidence(finding, "count");
  });
}

// Each guess reads both checkpoints once more.
constexpr std::uint64_t kMaxReadToGuess = std::uint64_t{1} << 30;

// Where nothing says how many heads there are, those that its shapes allow are tried: the mistake
// that gives every byte under one of them is the right one.
std::optional<MappedVerdict> judge_with_possible_head_counts(const ComparedPair& pair,
                                                             const ModelFacts& facts,
                                                             const std::string& world,
                                                             const MapOptions& mapping,
                                                             Progress* progress) {
  const MapOptions said = with_defaults(*pair.reference, facts, mapping);
  auto best = compare_in_naming_scheme(pair, world, said, progress);
  const bool says_heads = is_given(mapping, "groups=") || is_given(mapping, "heads=");
  if (best || says_heads || !mapping.config.empty()) return best;
  std::uint64_t read = 0;
  for (const auto& guess : guessed_heads(tensor_names_and_shapes(*pair.reference))) {
    if (is_cancelled(progress) || (best && read > kMaxReadToGuess)) break;
    MapOptions with_guess = said;
    with_guess.set.insert(with_guess.set.end(), guess.begin(), guess.end());
    auto judged = compare_in_naming_scheme(pair, world, with_guess, progress);
    read += pair.checkpoint->tensor_bytes() + pair.reference->tensor_bytes();
    if (!judged || (best && mistake_score(*judged) <= mistake_score(*best))) continue;
    best = std::move(judged);
    if (!has_unexplained_values(*best) && best->unnamed == 0) break;
  }
  return best;
}

}  // namespace

void report_wrong_conversions(const std::shared_ptr<const Checkpoint>& checkpoint,
                              const std::shared_ptr<const Checkpoint>& reference,
                              const MapOptions& mapping, std::optional<Depth> depth,
                              CheckReport& report, Progress* progress) {
  if (std::none_of(report.findings.begin(), report.findings.end(), [](const Finding& finding) {
        return is_less_specific(finding) &&
               (finding.severity > Severity::kInfo || is_of_norms_alone(finding));
      }))
    return;
  const ModelFacts facts = model_facts_of_both(*checkpoint, *reference);
  const std::string world = naming_scheme_of(tensor_names_and_shapes(*reference), facts);
  if (world.empty() || world != naming_scheme_of(tensor_names_and_shapes(*checkpoint), facts))
    return;
  const ComparedPair pair{checkpoint, reference, depth, world};
  auto judged = judge_with_possible_head_counts(pair, facts, counterpart_naming_scheme(world),
                                                mapping, progress);
  if (!judged) return;
  std::vector<Finding> named;
  std::set<std::string_view> subjects;
  for (Finding& finding : judged->findings) {
    if (has_evidence(finding, "mistake"))
      named.push_back(std::move(finding));
    else if (has_evidence(finding, "count") && finding.severity == Severity::kInfo)
      return;  // other weights or another step: no conversion mistake
  }
  for (const Finding& finding : named)
    subjects.insert(finding.subjects.begin(), finding.subjects.end());
  std::erase_if(report.findings, [&](Finding& old) {
    if (!is_less_specific(old) || !covers(subjects, old.subjects)) return false;
    copy_repair_from_rules(*checkpoint, old, named);
    return true;
  });
  add_findings(*checkpoint, std::move(named), report);
}

}  // namespace shw::verbs
