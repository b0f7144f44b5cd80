// What several rules ask of one checkpoint: found when the first of them asks, kept with the input.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/facts/cut_orders.h"
#include "core/facts/derived_layout.h"

namespace shw {

struct OptimizerSettings;

struct RuleMemo {
  std::optional<std::int64_t> ranks_that_wrote;
  std::optional<std::vector<OtherOrder>> other_orders;
  std::shared_ptr<const DerivedLayouts> derived_layouts;
  std::set<TensorId> equal_to_reference;  // byte for byte, as far as anybody has looked
  std::shared_ptr<const OptimizerSettings> optimizer_settings;
};

inline RuleMemo& memo_of(const RuleInput& input) {
  if (input.memo == nullptr) input.memo = std::make_shared<RuleMemo>();
  return *input.memo;
}

}  // namespace shw
