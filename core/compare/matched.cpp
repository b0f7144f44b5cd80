#include "core/compare/matched.h"

#include <algorithm>
#include <functional>

#include "core/base/words.h"

namespace shw {
namespace {

std::string elements_text(std::int64_t count, const std::string& what) {
  return plural(static_cast<std::uint64_t>(count), "element") + " " + what;
}

// Why the tensor's values are unknown on either side.
std::vector<std::string> unknown_value_reasons(const MatchedTensors& matched,
                                               std::optional<std::int64_t> apart) {
  std::vector<std::string> why = matched.doubts;
  if (matched.a.has_more_gaps || matched.b.has_more_gaps)
    why.emplace_back("its chunks overlap in too many places to be distinguished");
  else if (!apart)
    why.emplace_back("what is in no chunk is in too many places to be distinguished");
  if (apart == 0 && matched.a.missing != 0 && !matched.other_shape)
    why.push_back(elements_text(matched.a.missing, "are in no chunk of either"));
  if (matched.filled_a != 0)
    why.push_back(elements_text(matched.filled_a, "of A are not original: a repair filled them"));
  if (matched.filled_b != 0)
    why.push_back(elements_text(matched.filled_b, "of B are not original: a repair filled them"));
  if (!matched.seen) return why;
  if (matched.seen->disagrees_a) why.emplace_back("chunks of A that hold the same elements differ");
  if (matched.seen->disagrees_b) why.emplace_back("chunks of B that hold the same elements differ");
  if (matched.seen->too_many_pairs)
    why.emplace_back("its tiles meet those of the other in more places than --memory can hold");
  if (matched.seen->values.unread != 0 && !matched.seen->too_many_pairs)
    why.push_back(
        elements_text(static_cast<std::int64_t>(matched.seen->values.unread), "could not be read"));
  return why;
}

// The shape is derived from tiles that were found; unread ones may enlarge it.
bool may_grow_with_unread_tiles(const Checkpoint& checkpoint, TensorId tensor, ExtentsView other) {
  ExtentsView shape = checkpoint.shape(tensor);
  return !checkpoint.format().traits.has_index && shape.size() == other.size() &&
         std::equal(shape.begin(), shape.end(), other.begin(), std::less_equal<>());
}

// Why differing shapes or missing tiles prove no difference: unopened files may contain them.
std::vector<std::string> undecided_due_to_unread_files(const BothCheckpoints& both,
                                                       const MatchedTensors& matched,
                                                       UnreadableSides hides, bool is_incomplete) {
  auto [one, two] = matched.tensor;
  std::vector<std::string> why;
  auto add = [&](bool is_hiding, const char* side, const TileCover& cover, bool grows) {
    bool lacks = matched.other_shape ? grows : is_incomplete && cover.missing != 0;
    if (is_hiding && lacks) why.push_back(unreadable_side_text(side, "more of its tiles may be"));
  };
  add(hides.a, "A", matched.a, may_grow_with_unread_tiles(both.a, one, both.b.shape(two)));
  add(hides.b, "B", matched.b, may_grow_with_unread_tiles(both.b, two, both.a.shape(one)));
  return why;
}

// The first kind that applies, in declaration order; empty if everything compared is equal.
std::optional<DifferenceKind> kind_of(const MatchedTensors& matched, const TensorDifference& told,
                                      bool is_incomplete, bool is_hidden) {
  const bool differs = matched.seen && matched.seen->values.elements.differing != 0;
  const bool disagrees = matched.seen && (matched.seen->disagrees_a || matched.seen->disagrees_b);
  if (matched.other_shape && !is_hidden) return DifferenceKind::kReshaped;
  if (matched.other_dtype) return DifferenceKind::kDtype;
  if (is_incomplete && !is_hidden) return DifferenceKind::kIncomplete;
  if (differs && !disagrees && matched.doubts.empty()) return DifferenceKind::kValues;
  if (told.error || !told.why.empty()) return DifferenceKind::kUndecided;
  return matched.retiled ? std::optional(DifferenceKind::kRetiled) : std::nullopt;
}

// Read errors are more specific than errors in the metadata.
void set_read_error(const MatchedTensors& matched, TensorDifference& told) {
  bool in_b = !matched.a.error;
  const std::optional<Error>* error = in_b ? &matched.b.error : &matched.a.error;
  if (matched.seen && matched.seen->error) {
    error = &matched.seen->error;
    in_b = matched.seen->error_in_b;
  }
  if (!*error) return;
  told.error = *error;
  told.error_in = in_b ? 'b' : 'a';
}

}  // namespace

TensorSide side_of(const Checkpoint& checkpoint, TensorId tensor) {
  TensorSide side;
  side.dtype = checkpoint.dtype(tensor);
  side.shape = copy_of(checkpoint.shape(tensor));
  side.tiles = checkpoint.chunks(tensor).size();
  return side;
}

std::string unreadable_side_text(const char* side, const char* what) {
  return std::string(side) + " has what could not be opened, and " + what + " there";
}

MatchVerdict judge(const BothCheckpoints& both, const MatchedTensors& matched,
                   UnreadableSides hides) {
  auto [one, two] = matched.tensor;
  TensorDifference told;
  told.a = side_of(both.a, one);
  told.b = side_of(both.b, two);
  told.a->missing = matched.a.missing;
  told.b->missing = matched.b.missing;
  told.a->filled = matched.filled_a;
  told.b->filled = matched.filled_b;
  told.retiled = matched.retiled;
  told.same_elements = matched.same_elements;
  if (matched.seen) told.values = matched.seen->values;
  const auto apart = matched.other_shape ? std::optional<std::int64_t>(0)
                                         : differing_gap_elements(matched.a, matched.b);
  const bool is_incomplete = apart && *apart != 0;
  const auto hidden = undecided_due_to_unread_files(both, matched, hides, is_incomplete);
  told.why = unknown_value_reasons(matched, apart);
  told.why.insert(told.why.end(), hidden.begin(), hidden.end());
  set_read_error(matched, told);
  const std::optional<DifferenceKind> kind = kind_of(matched, told, is_incomplete, !hidden.empty());
  told.fqn = both.a.fqn(one);
  if (kind) told.kind = *kind;
  return {kind, std::move(told)};
}

}  // namespace shw
