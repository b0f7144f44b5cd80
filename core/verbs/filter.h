// The filter line over the list of tensors: words that all must occur in the FQN (case is ignored),
// and terms:
//   finding:*  finding:RULE   dtype:bfloat16   rank:17   ndim:3   shape:[288,*,640]
// and letters that begin parts of a name, or follow one another in it, in that order:
//   ~l3dp  finds layers.3.mlp.down_proj.weight
// A dtype may be spelt as people do (bf16, fp32, float). A shape has as many dimensions as are
// named; one whose bracket is still open, while it is typed, matches the leading ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"
#include "core/rules/check.h"

namespace shw {

// Every name in lower case, one after the other: a word is looked for in all of them at once,
// 250,000 names are one text of 12 MB and not as many places in memory.
struct FoldedNames {
  std::string text;
  std::vector<std::size_t> begin;     // of each, and where the last one ends
  std::vector<std::uint16_t> shared;  // of each: with how many characters the one before begins too
  std::vector<std::uint64_t> signs;   // of each: which characters it holds, some of them together
  std::string_view of(std::uint32_t tensor) const {
    return std::string_view(text).substr(begin[tensor], begin[tensor + 1] - begin[tensor] - 1);
  }
  // So many characters, or more, begin the name of the second and that of the first before it.
  std::size_t shared_front(std::uint32_t first, std::uint32_t second) const;
};
FoldedNames fold_names(const Checkpoint& checkpoint);

// Where it looks. Null: at all tensors, at their names as they are.
struct FilterHelp {
  const FoldedNames* names = nullptr;
  const std::vector<std::uint32_t>* among = nullptr;  // no other tensor passes
};
// Indices of the tensors that pass, in recorded order; nothing if cancelled. `report` may be null.
Result<std::vector<std::uint32_t>> filter_tensors(const Checkpoint& checkpoint,
                                                  const CheckReport* report, std::string_view text,
                                                  Progress* progress, const FilterHelp& help = {});
// As "~letters" does, case ignored.
bool has_letters_in_order(std::string_view name, std::string_view letters);
// The filter with "~" before its words, terms as they are; empty where it has no word that lacks
// it.
std::string letters_instead(std::string_view text);
// Whatever passes `text` passes `before`: it was typed on.
bool is_narrower(std::string_view text, std::string_view before);

// A term that is none ("dytpe:bf16"), or whose value is none ("rank:x", "finding:nosuch"), as a
// usage error with what was probably meant: for a line that is complete.
Status check_filter(const Checkpoint& checkpoint, std::string_view text);

// Entries that are no tensors, by their index: those whose name has all words; a term fits none.
std::vector<std::uint32_t> filter_objects(const Checkpoint& checkpoint, std::string_view text);

}  // namespace shw
