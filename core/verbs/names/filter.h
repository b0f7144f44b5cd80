// The filter for the list of tensors. It has words, which must all occur in the FQN (ignoring
// case), and terms:
//   finding:*  finding:RULE   dtype:bfloat16   rank:17   ndim:3   shape:[288,*,640]
// A shell pattern matches the whole name: *.weight
// Letters after "~" must begin parts of the name, or follow one another in it, in this order:
//   ~l3dp  finds layers.3.mlp.down_proj.weight
// Dtypes have short names too (bf16, fp32, float). A shape must have as many dims as given; while
// its bracket is not closed yet, it matches the leading dims.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"
#include "core/rules/check.h"
#include "core/verbs/names/folded_names.h"

namespace shw {

// Optional inputs; null: all tensors, unfolded names.
struct FilterHelp {
  const FoldedNames* names = nullptr;
  const std::vector<std::uint32_t>* among = nullptr;  // restricts the result
};
// Indices of matching tensors in recorded order; an error if cancelled. `report` may be null.
Result<std::vector<std::uint32_t>> filter_tensors(const Checkpoint& checkpoint,
                                                  const CheckReport* report, std::string_view text,
                                                  Progress* progress, const FilterHelp& help = {});
// The filter with "~" before each word, for a second attempt; empty if all words have
// it.
std::string as_fuzzy_filter(std::string_view text);
// True if `text` extends `before`, so that its matches are a subset.
bool is_narrower(std::string_view text, std::string_view before);

// kUsage for an unknown term ("dytpe:bf16") or value ("rank:x", "finding:nosuch"), with a
// suggestion; for complete lines.
Status check_filter(const Checkpoint& checkpoint, std::string_view text);

// Indices of matching non-tensor entries: names with all words; terms match none.
std::vector<std::uint32_t> filter_objects(const Checkpoint& checkpoint, std::string_view text);

}  // namespace shw
