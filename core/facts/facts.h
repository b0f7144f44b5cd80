// Facts: results that several rules need, computed once before the first rule, as deep as the check
// reads.
#pragma once

#include <vector>

#include "core/facts/check_input.h"
#include "core/facts/layout/derived_layout.h"
#include "core/facts/layout/split_orders.h"
#include "core/facts/reference/config_fit.h"
#include "core/facts/states/optimizer_settings.h"
#include "core/facts/storage/filled.h"
#include "core/facts/storage/unlisted_tiles.h"
#include "core/facts/values/optimizer_values.h"

namespace shw {

struct Facts : CheckInput {
  FilledReport filled;             // values that an earlier repair filled in
  DerivedLayouts derived_layouts;  // from a router's shape, then from the matrices of its layer
  std::vector<DifferentOrder> other_orders;  // only with a spec
  UnlistedTiles unlisted;                    // from Depth::kHeaders on: reads chunk headers
  OptimizerSettings optimizer_settings;      // from Depth::kHeaders on: reads entries
  std::optional<ConfigFit> config_fit;       // set if a config.json exists next to the weights
  OptimizerValues looks;                     // at Depth::kData: from read_optimizer_values()
};

Facts build_facts(const CheckInput& input);

}  // namespace shw
