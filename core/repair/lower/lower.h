// From a diagnosis to new chunks: one file a kind of diagnosis, what these files share, and the
// proof that every lowered tensor must pass before anybody sees it.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/model/diagnosis.h"
#include "core/repair/plan/plan_types.h"

namespace shw {

// How a diagnosis becomes new chunks (spec/failures.md 1.1, repair algebra), proved.
Result<PlannedTensor> lower(const Checkpoint& checkpoint, const Diagnosis& diagnosis);

Result<PlannedTensor> lower_axis_moved(const Checkpoint& checkpoint, const AxisMoved& diagnosis);
Result<PlannedTensor> lower_relabelled(const Checkpoint& checkpoint, const Relabelled& diagnosis);
Result<PlannedTensor> lower_partly_lost(const Checkpoint& checkpoint, const PartlyLost& diagnosis);
Result<PlannedTensor> lower_blocks_permuted(const Checkpoint& checkpoint,
                                            const BlocksPermuted& diagnosis);
Result<PlannedTensor> lower_restored_from_side(const Checkpoint& checkpoint,
                                               const RestoredFromSide& diagnosis);
Result<PlannedTensor> lower_repointed(const Checkpoint& checkpoint, const Repointed& diagnosis);
Result<PlannedTensor> lower_relisted(const Checkpoint& checkpoint, const Relisted& diagnosis);
Result<PlannedTensor> lower_transposed(const Checkpoint& checkpoint, const Transposed& diagnosis);
Result<PlannedTensor> lower_renamed(const Checkpoint& checkpoint, const Renamed& diagnosis);

// Holds for every planned tensor, wherever it came from (a diagnosis, or JSON that a person
// edited): the new chunks tile the new shape; an item that is taken as it is has the size and dtype
// of its new box; pieces lie inside their chunks and never meet; what is neither item, piece nor
// side piece is exactly `lost`.
Status prove_planned(const Checkpoint& checkpoint, const PlannedTensor& planned);
// And for a repair that claims to lose nothing: every element of the tensor's chunks is used
// exactly once, so that the plan can be run backwards.
Status prove_bijection(const Checkpoint& checkpoint, const PlannedTensor& planned);
// For one that came back as JSON and says that nothing is lost: the same, or what is left over are
// rows at the end that are padding, as their bytes say.
Status prove_nothing_lost(const Checkpoint& checkpoint, const PlannedTensor& planned);
// For one that gives elements up: none of those that it keeps stands in two places.
Status prove_used_once(const Checkpoint& checkpoint, const PlannedTensor& planned);
// For a whole plan that came back as JSON: where a tensor is put together of another one's elements
// and says that nothing is lost, its own go to others, each once.
Status prove_exchanged(const Checkpoint& checkpoint, const Plan& plan);
// The elements of such rows; 0 where there are none.
std::int64_t padding_left_out(const Checkpoint& checkpoint, const PlannedTensor& planned);

// No byte of the tensor is touched: every new chunk is an old item as it is.
bool is_pure_relabel(const PlannedTensor& planned);
std::uint64_t bytes_moved(const Checkpoint& checkpoint, const PlannedTensor& planned);

// Empty, or every dim once.
bool is_order_of_dims(const Extents& permutation, std::size_t ndim);

// The rest of a chunk that is put together from no piece, in chunk coordinates.
Result<std::vector<Box>> rest_of(const Checkpoint& checkpoint, const PlannedTensor& tensor,
                                 const PlannedChunk& chunk);

// The recorded boxes of a tensor as they are can be worked with: the rank of the shape, inside it
// or not, no negative and no overflowing number.
Status check_chunks_are_boxes(const Checkpoint& checkpoint, TensorId tensor);

tl::unexpected<Error> cannot_lower(const Checkpoint& checkpoint, TensorId tensor, std::string why);

}  // namespace shw
