// What is derived from a checkpoint once and asked by many rules: found before the first of them
// runs, as deep as the check looks.
#pragma once

#include <vector>

#include "core/facts/check_input.h"
#include "core/facts/layout/cut_orders.h"
#include "core/facts/layout/derived_layout.h"
#include "core/facts/reference/config_fit.h"
#include "core/facts/states/optimizer_settings.h"
#include "core/facts/storage/filled.h"
#include "core/facts/storage/unlisted_tiles.h"
#include "core/facts/values/value_looks.h"

namespace shw {

struct Facts : CheckInput {
  FilledReport filled;                   // what an earlier repair filled
  DerivedLayouts derived_layouts;        // by the router's law, then by those of a layer's matrices
  std::vector<OtherOrder> other_orders;  // with a spec
  UnlistedTiles unlisted;                // from Depth::kHeaders on: reads their headers
  OptimizerSettings optimizer_settings;  // from Depth::kHeaders on: reads objects
  std::optional<ConfigFit> config_fit;   // where a config.json lies beside the weights
  ValueLooks looks;                      // at Depth::kData, by who asks look_at_values()
};

Facts build_facts(const CheckInput& input);

}  // namespace shw
