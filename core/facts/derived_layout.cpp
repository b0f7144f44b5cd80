#include "core/facts/derived_layout.h"

#include <algorithm>

#include "core/facts/memo.h"
#include "core/facts/router_law.h"
#include "core/facts/sibling_laws.h"
#include "core/facts/spec_layout.h"

namespace shw {

RuleInput with_layout(const RuleInput& input, const DerivedLayout& layout) {
  RuleInput derived = input;
  derived.spec = &layout.spec;
  derived.memo = nullptr;  // what was found by another spec, or none, is no answer here
  return derived;
}

std::int64_t ranks_seen(const RuleInput& input, const std::vector<std::int64_t>& beside) {
  std::int64_t ranks = ranks_that_wrote(input);
  // A rank that had nothing to write may still have made its file.
  for (const FileRow& file : input.checkpoint.files()) {
    if (file.rank) ranks = std::max<std::int64_t>(ranks, *file.rank + 1);
  }
  for (std::int64_t rank : beside) ranks = std::max(ranks, rank + 1);
  return ranks;
}

const DerivedLayouts& derived_layouts(const RuleInput& input) {
  RuleMemo& memo = memo_of(input);
  if (memo.derived_layouts == nullptr) {
    DerivedLayouts found;
    derive_by_router(input, found);
    derive_by_siblings(input, found);
    memo.derived_layouts = std::make_shared<const DerivedLayouts>(std::move(found));
  }
  return *memo.derived_layouts;
}

}  // namespace shw
