// Repairs a tensor whose elements are at wrong places, from the checkpoint's own bytes. Every
// repair found gives each element of the expected tensor.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/progress.h"
#include "core/facts/values/added_tensor.h"
#include "core/maps/compare_mapped.h"
#include "core/maps/loaded_tensor.h"
#include "core/model/diagnosis.h"

namespace shw {

// Diagnosis if `there` (the tensor `tensor`) is `expected` with its slices along one dim in another
// order, or with its last two dims swapped; otherwise nullopt. Rows from `padding_from` on may have
// any value; 0: no padding.
std::optional<Diagnosis> diagnose_rearrangement(TensorId tensor, const LoadedTensor& there,
                                                const LoadedTensor& expected,
                                                std::int64_t padding_from = 0);

struct RepairsThroughMap {
  std::vector<Diagnosis> diagnoses;
  std::map<TensorId, FoundShift> shifts;  // tensors of which every element is shifted by 1
};

// Repairs of the differing tensors that `comparison` names: tensors whose content another tensor
// holds, tensors whose rows are spread over other tensors, and tensors whose elements are all
// shifted by 1.
Result<RepairsThroughMap> repairs_through_map(const std::shared_ptr<const Checkpoint>& compared,
                                              const std::shared_ptr<const Checkpoint>& reference,
                                              const MappedComparison& comparison,
                                              const MappedOptions& options, const ModelFacts& facts,
                                              Progress* progress);

}  // namespace shw
