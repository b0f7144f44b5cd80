// How a tensor whose elements stand in wrong places is put right out of the checkpoint's own bytes.
// Whatever is found gives every element of the expected tensor.
#pragma once

#include <memory>
#include <vector>

#include "core/base/progress.h"
#include "core/maps/compare_mapped.h"
#include "core/maps/held_tensor.h"
#include "core/model/diagnosis.h"

namespace shw {

// `there`, the tensor `tensor`, is `expected` in another order: its slices along one dim, or its
// last two dims exchanged. Nothing where it is not. Rows from `padding_from` on may be any; 0:
// none.
std::optional<Diagnosis> rearranged(TensorId tensor, const HeldTensor& there,
                                    const HeldTensor& expected, std::int64_t padding_from = 0);

// For the tensors of `compared` that the comparison names: those that are put right so, by their
// number. Tensors that hold what belongs to another one of them, or rows of it, are put right too.
Result<std::vector<Diagnosis>> repairs_through_map(
    const std::shared_ptr<const Checkpoint>& compared,
    const std::shared_ptr<const Checkpoint>& reference, const MappedComparison& comparison,
    const MappedOptions& options, const ModelFacts& facts, Progress* progress);

}  // namespace shw
