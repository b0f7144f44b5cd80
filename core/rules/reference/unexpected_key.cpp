#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// The expected names come from the user's spec file or from the reference.
std::string source_of_expected_names(const Facts& facts) {
  const Checkpoint* reference = facts.reference;
  std::string name = reference != nullptr && reference->directory() != nullptr
                         ? reference->directory()->name()
                         : "";
  std::string where =
      reference != nullptr && facts.spec->source == name ? "the reference" : "the spec";
  return facts.spec->source.empty() ? where : where + " " + facts.spec->source;
}

void find_unexpected_keys(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.spec == nullptr) return;
  const Checkpoint& checkpoint = facts.checkpoint;
  Finding finding{.rule = "unexpected-key", .severity = Severity::kInfo};
  for (TensorId tensor : each_tensor(facts)) {
    std::string_view fqn = checkpoint.fqn(tensor);
    if (facts.spec->find(fqn) == nullptr && !facts.untrusted_in_reference.contains(tensor))
      finding.subjects.emplace_back(fqn);
  }
  if (finding.subjects.empty()) return;
  const bool is_one = finding.subjects.size() == 1;
  finding.cause = plural(finding.subjects.size(), "tensor") + " of the checkpoint " +
                  (is_one ? "is" : "are") + " not in " + source_of_expected_names(facts) + " (" +
                  short_list_text(finding.subjects) + "): nothing is expected of " +
                  (is_one ? "it" : "them") + ", so less was checked.";
  finding.evidence = {{"count", count_of(finding.subjects.size())}};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kUnexpectedKey = {
    .id = "unexpected-key",
    .depth = Depth::kMetadata,
    .title = "The checkpoint has a tensor that the spec or reference does not have",
    .teaches =
        "Not a defect: a spec may cover part of the model, and optimizer states are often left "
        "out. torch loads the requested tensors and ignores the rest. It is reported because "
        "tensors that the spec or reference does not have were not compared.",
    .lesson =
        {.drawing = R"(
  the spec names              the checkpoint has
  layers.0.weight    ──────   layers.0.weight
  -                  ?─────   optim.state.layers.0.weight.exp_avg
)",
         .remedy =
             "Nothing to do. Together with missing keys it often means that tensors were renamed."},
    .words = {.text = "not in the spec or reference", .as_info = true},
    .run = find_unexpected_keys,
};

}  // namespace shw
