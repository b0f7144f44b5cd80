#include "core/facts/facts.h"

#include "core/facts/layout/parameter_constraint.h"
#include "core/facts/layout/router_constraint.h"
#include "core/facts/layout/sibling_constraints.h"

namespace shw {

Facts build_facts(const CheckInput& input) {
  Facts facts{input, filled_report_of(input.checkpoint, input.progress),
              {},    find_different_orders(input),
              {},    {},
              {},    {}};
  if (facts.states == nullptr) {
    facts.states = std::make_shared<const std::vector<OptimizerState>>(
        optimizer_states(input.checkpoint, input.progress));
  }
  facts.config_fit = fit_config(input.checkpoint, input.progress);
  // Layouts from a router come first, then those from the matrices of a layer, then shapes of
  // optimizer states from their parameters.
  derive_by_router(facts, facts.derived_layouts);
  derive_by_siblings(facts, facts.derived_layouts);
  derive_by_parameters(facts, facts.derived_layouts);
  if (input.depth == Depth::kMetadata) return facts;
  facts.unlisted = find_unlisted_tiles(input);
  facts.optimizer_settings = read_optimizer_settings(input.checkpoint, input.progress);
  return facts;
}

}  // namespace shw
