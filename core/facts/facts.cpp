#include "core/facts/facts.h"

#include "core/facts/layout/parameter_constraint.h"
#include "core/facts/layout/router_constraint.h"
#include "core/facts/layout/sibling_constraints.h"

namespace shw {

Facts build_facts(const CheckInput& input) {
  Facts facts{
      input, filled_in(input.checkpoint, input.progress), {}, find_other_orders(input), {}, {}, {},
      {}};
  if (facts.states == nullptr) {
    facts.states = std::make_shared<const std::vector<OptimizerState>>(
        optimizer_states(input.checkpoint, input.progress));
  }
  facts.config_fit = fit_config(input.checkpoint, input.progress);
  // The router's law first (S4), then the laws of a layer's matrices (S5 E1, failures.md 0.7.12),
  // then what parameters say of their states (P08).
  derive_by_router(facts, facts.derived_layouts);
  derive_by_siblings(facts, facts.derived_layouts);
  derive_by_parameters(facts, facts.derived_layouts);
  if (input.depth == Depth::kMetadata) return facts;
  facts.unlisted = find_unlisted_tiles(input);
  facts.optimizer_settings = read_optimizer_settings(input.checkpoint, input.progress);
  return facts;
}

}  // namespace shw
