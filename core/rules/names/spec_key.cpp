#include "core/rules/names/spec_key.h"
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/spec/spec_keys.h"

namespace shw {
namespace {

void find_misspelt_keys(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.spec == nullptr) return;
  const std::vector<MisspeltKey> misspelt = misspelt_keys(*facts.spec);
  if (misspelt.empty()) return;
  Finding finding{.rule = "spec-key", .severity = Severity::kWarning};
  std::vector<std::string> keys;
  for (const MisspeltKey& one : misspelt) {
    add_subject(finding.subjects, one.fqn);
    keys.push_back(one.fqn + ": \"" + one.key + "\", not \"" + one.meant + "\"");
  }
  const MisspeltKey& first = misspelt.front();
  finding.cause = "The spec gives " + first.fqn + " the key \"" + first.key +
                  "\", which is unknown; the nearest known key is \"" + first.meant + "\". What " +
                  plural(misspelt.size(), "such key") +
                  (misspelt.size() == 1 ? " says was" : " say was") +
                  " not compared with the checkpoint.";
  finding.evidence = {{"keys", capped(keys)}, {"count", count_of(keys.size())}};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kSpecKey = {
    .id = "spec-key",
    .depth = Depth::kMetadata,
    .title = "A key of the spec is misspelt",
    .teaches =
        "An entry of a spec says \"shape\", \"dtype\", \"mesh\", \"placements\" and \"role\". "
        "Other keys are ignored. A key that is one or two letters away from a known key is "
        "probably a typo, and its value is not compared with the checkpoint.",
    .lesson = {.drawing = R"(
  spec        "fc.weight": {"shape": [8, 8], "dtpye": "bfloat16"}
  compared     shape                          not the dtype
)",
               .remedy = "Correct the key in the spec, and check again."},
    .outcome = RunOutcome::kNone,
    .run = find_misspelt_keys,
};

}  // namespace shw
