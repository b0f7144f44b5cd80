#include "core/facts/layout/parameter_constraint.h"

#include <fmt/core.h>

#include "core/base/words.h"
#include "core/facts/states/split_pairs.h"
#include "core/facts/states/states_spec.h"

namespace shw {
namespace {

constexpr double kParameterConfidence = 0.97;  // share of correct results on generated cases

std::vector<const OptimizerState*> states_shorter_than_parameter(const CheckInput& input) {
  const Checkpoint& c = input.checkpoint;
  std::vector<const OptimizerState*> out;
  for (const OptimizerState& state : each_state(input)) {
    if (input.spec != nullptr && input.spec->find(c.fqn(state.state)) != nullptr) continue;
    if (is_smaller_than_parameter(c, state)) out.push_back(&state);
  }
  if (out.empty()) return out;
  const std::set<TensorId> split = states_split_locally(input);
  std::erase_if(out, [&](const OptimizerState* state) { return split.contains(state->state); });
  return out;
}

}  // namespace

void derive_by_parameters(const CheckInput& input, DerivedLayouts& out) {
  const Checkpoint& c = input.checkpoint;
  const std::vector<const OptimizerState*> found = states_shorter_than_parameter(input);
  if (found.empty()) return;
  const OptimizerState& example = *found.front();
  UndecidedAxis told;
  for (const OptimizerState* state : found) told.subjects.emplace_back(c.fqn(state->state));
  told.cause = fmt::format(
      "{} short of {}: {} is {} and {} is {}, though the chunks of both have equal sizes on each "
      "rank. The save left a mesh axis out of the states, so one rank's shard was kept for "
      "several.",
      plural(found.size(), "optimizer state") + (found.size() == 1 ? " is" : " are"),
      found.size() == 1 ? "its parameter" : "their parameters", c.fqn(example.state),
      to_text(c.shape(example.state)), c.fqn(*example.parameter),
      to_text(c.shape(*example.parameter)));
  told.evidence = {{"example", std::string(c.fqn(example.state))},
                   {"saved_shape", copy_of(c.shape(example.state))},
                   {"shape_of_the_parameter", copy_of(c.shape(*example.parameter))},
                   {"confidence", kParameterConfidence},
                   {"undecided", std::string("to know which rank holds which shard, give mesh and "
                                             "placements of the parameters in a spec (--spec)")}};
  told.link = "TransformerEngine #2713";
  out.undecided.push_back(std::move(told));
}

}  // namespace shw
