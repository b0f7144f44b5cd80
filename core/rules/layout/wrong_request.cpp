#include "core/rules/layout/wrong_request.h"

#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/states/optimizer_states.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

bool has_exact_tiling(const Facts& facts, TensorId tensor) {
  return index_of(tensor) < facts.tilings.size() &&
         facts.tilings[index_of(tensor)].tiling != Tiling::kInexact;
}

// One dimension shorter, otherwise equal: one rank's part.
bool requests_a_part(ExtentsView asked, ExtentsView saved) {
  if (asked.size() != saved.size()) return false;
  int shorter = 0;
  for (std::size_t d = 0; d < asked.size(); ++d) {
    if (asked[d] > saved[d]) return false;
    if (asked[d] < saved[d]) ++shorter;
  }
  return shorter == 1;
}

}  // namespace

void report_wrong_requests(const Facts& facts, RequestKind kind, std::string_view rule,
                           std::string_view link, std::vector<Finding>& findings) {
  if (facts.spec == nullptr) return;
  const Checkpoint& c = facts.checkpoint;
  Finding finding{.rule = std::string(rule), .severity = Severity::kWarning};
  finding.link = link;
  for (const OptimizerState& state : each_state(facts)) {
    bool half = state.key.ends_with("_w") || state.key.ends_with("_v");
    if (half != (kind == RequestKind::kHalves) || !state.parameter || !state.is_parameter_certain)
      continue;
    if (state.role == StateRole::kOther) continue;
    ExtentsView saved = c.shape(state.state);
    const SpecEntry* asked = facts.spec->find(c.fqn(state.state));
    const SpecEntry* parameter = facts.spec->find(c.fqn(*state.parameter));
    // Proof: the parameter is saved as requested and has the size of the saved state.
    bool proved = parameter != nullptr && same(parameter->shape, c.shape(*state.parameter)) &&
                  same(saved, parameter->shape) && has_exact_tiling(facts, state.state);
    if (asked == nullptr || !proved || !requests_a_part(asked->shape, saved)) continue;
    if (finding.subjects.empty()) {
      finding.cause = "The checkpoint is right; the loader is wrong: it expects " +
                      to_text(ExtentsView(asked->shape)) + " of " +
                      std::string(c.fqn(state.state)) + ", which is " + to_text(saved) +
                      " like its parameter: it takes one rank's shard for the whole.";
      finding.evidence = {{"saved", copy_of(saved)},
                          {"requested", asked->shape},
                          {"shape_of_the_parameter", copy_of(c.shape(*state.parameter))},
                          {"where", std::string("request")}};
    }
    finding.subjects.emplace_back(c.fqn(state.state));
  }
  if (!finding.subjects.empty()) findings.push_back(std::move(finding));
}

}  // namespace shw
