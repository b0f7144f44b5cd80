// Lowers a diagnosis to new chunks. One file per kind of diagnosis, plus what these files share and
// the proof that every lowered tensor must pass before anyone sees it.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/model/diagnosis.h"
#include "core/repair/plan/plan_types.h"

namespace shw {

// Computes the chunks of the repaired tensor from a diagnosis. Fails unless the chunks are proved
// to hold the right elements.
Result<PlannedTensor> lower(const Checkpoint& checkpoint, const Diagnosis& diagnosis);

Result<PlannedTensor> lower_axis_moved(const Checkpoint& checkpoint, const AxisMoved& diagnosis);
Result<PlannedTensor> lower_relabelled(const Checkpoint& checkpoint, const WrongBoxes& diagnosis);
Result<PlannedTensor> lower_partly_lost(const Checkpoint& checkpoint, const PartlyLost& diagnosis);
Result<PlannedTensor> lower_blocks_permuted(const Checkpoint& checkpoint,
                                            const BlocksPermuted& diagnosis);
Result<PlannedTensor> lower_restored_from_side(const Checkpoint& checkpoint,
                                               const RestoredFromRankFiles& diagnosis);
Result<PlannedTensor> lower_repointed(const Checkpoint& checkpoint,
                                      const WrongItemRecords& diagnosis);
Result<PlannedTensor> lower_relisted(const Checkpoint& checkpoint, const UnlistedChunks& diagnosis);
Result<PlannedTensor> lower_transposed(const Checkpoint& checkpoint, const Transposed& diagnosis);
Result<PlannedTensor> lower_renamed(const Checkpoint& checkpoint, const Renamed& diagnosis);

// Checks every planned tensor, whether it comes from a diagnosis or from edited JSON: the new
// chunks tile the new shape; an item that is reused has the size and dtype of its new box; pieces
// are inside their chunks and do not overlap; elements covered by no item, piece or external piece
// are exactly `lost`.
Status prove_planned(const Checkpoint& checkpoint, const PlannedTensor& planned);
// Checks that a lossless repair uses every element of the tensor's chunks exactly once, so that the
// plan is reversible.
Status prove_bijection(const Checkpoint& checkpoint, const PlannedTensor& planned);
// Checks a plan from JSON that claims to lose nothing: it is a bijection, or only leaves out rows
// at the end that the bytes show to be padding.
Status prove_nothing_lost(const Checkpoint& checkpoint, const PlannedTensor& planned);
// Checks that a lossy plan puts no element in two places.
Status prove_used_once(const Checkpoint& checkpoint, const PlannedTensor& planned);
// Checks a whole plan from JSON: if a lossless tensor is assembled from another tensor's elements,
// its own elements are used by other tensors, each once.
Status prove_exchanged(const Checkpoint& checkpoint, const Plan& plan);
// Number of elements in padding rows at the end that the plan leaves out.
std::int64_t count_dropped_padding(const Checkpoint& checkpoint, const PlannedTensor& planned);

// True if every new chunk is an old item as it is, so that no byte of the tensor is read.
bool is_pure_relabel(const PlannedTensor& planned);
std::uint64_t bytes_moved(const Checkpoint& checkpoint, const PlannedTensor& planned);

// True if the permutation is empty or names every dim once.
bool is_order_of_dims(const Extents& permutation, std::size_t ndim);

// Boxes of a chunk that no piece fills, in chunk coordinates.
Result<std::vector<Box>> unfilled_boxes(const Checkpoint& checkpoint, const PlannedTensor& tensor,
                                        const PlannedChunk& chunk);

// Checks that the recorded boxes have as many dims as the shape, no negative and no overflowing
// number. They may be outside the shape.
Status check_chunks_are_boxes(const Checkpoint& checkpoint, TensorId tensor);

tl::unexpected<Error> cannot_lower(const Checkpoint& checkpoint, TensorId tensor, std::string why);

}  // namespace shw
