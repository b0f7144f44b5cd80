// The retained chunks of partly lost tensors and their usefulness; used by all rules that place
// retained chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/facts/layout/split_orders.h"
#include "core/facts/states/optimizer_states.h"
#include "core/model/checkpoint.h"
#include "core/model/finding.h"

namespace shw {

// Places the whole item of `chunk` with shape `sizes` at `at`.
RetainedChunk whole_retained_chunk(ChunkId chunk, ExtentsView sizes, ExtentsView at);
// The parts of the chunks of `source` inside `wanted`, placed so that `wanted` begins at `at`.
std::vector<RetainedChunk> crop_to_retained_chunks(const Checkpoint& checkpoint, TensorId source,
                                                   const Box& wanted, const Extents& at);
// The first elements of a tensor, as far as `expected` reaches.
PartlyLost crop_tensor_to_shape(const Checkpoint& checkpoint, TensorId tensor,
                                const Extents& expected);
Box destination(const RetainedChunk& retained_chunk);

struct LostCount {
  std::int64_t kept = 0;
  std::int64_t lost = 0;
  std::int64_t refilled = 0;  // lost elements that a model tensor can fill
};
LostCount loss_of(const PartlyLost& part);
LostCount loss_of(const std::vector<PartlyLost>& parts);

// Adam divides one moment by the root of the other: a row of one moment without the other does more
// harm than none (m known, v zero gives an update of m / epsilon). Keeps only the rows that all
// moments of one parameter (`parts`) have.
void intersect_moment_rows(std::vector<PartlyLost*>& parts);

// Applies intersect_moment_rows() to all parameters. `moments`: the moments among `parts`; names
// that differ only in the kind belong to one parameter and optimizer. Complete moments lose the
// rows that others lost, are added to `parts`, and their names are returned. `orders`: tensors
// whose chunks belong elsewhere. `left_alone`: moments whose chunk positions are unknown lose
// nothing.
std::vector<std::string> keep_common_moments(const Checkpoint& checkpoint,
                                             const std::vector<DifferentOrder>& orders,
                                             const std::vector<std::size_t>& moments,
                                             std::vector<PartlyLost>& parts,
                                             const std::set<TensorId>& left_alone = {});

// "exp_avg from rank 1, exp_avg_sq from rank 2": the writers of retained chunks per kind.
std::vector<std::string> writers_by_kind(const Checkpoint& checkpoint,
                                         const std::vector<OptimizerState>& states);

std::string count_text(std::int64_t count, std::string_view one, std::string_view many);

}  // namespace shw
