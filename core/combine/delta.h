// The changes between two checkpoints: exactly the elements that differ. A delta is a checkpoint
// itself, with an additional delta.json:
//
//   NAME.delta_indices   [n] int32, int64 above 2^31 elements: row-major, increasing
//   NAME.delta_values    [n] in the tensor's dtype: the new elements
//   NAME.delta_whole     the new tensor, if the base lacks it, if shape or dtype differ, or if most
//                        elements changed
//   delta.json           {"schema", "base": {"hash", "tensors"}, "result": {"hash", "tensors"},
//                        "dropped": [NAME, ...]}    hash: as `shardwright hash` gives it
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

inline constexpr const char* kDeltaFile = "delta.json";

struct TotalHash {
  std::string hash;
  std::size_t tensors = 0;
};
struct DeltaInfo {
  TotalHash base, result;
  std::vector<std::string> dropped;  // tensors of the base that the result lacks
};
// kUsage if the folder has no delta.json, kDamaged if it is not a valid one.
Result<DeltaInfo> read_delta_info(const Directory& folder);

// Compares every element of both by its bits.
Result<std::shared_ptr<const Checkpoint>> compute_delta(std::shared_ptr<const Checkpoint> base,
                                                        std::shared_ptr<const Checkpoint> result,
                                                        const TotalHash& base_hash,
                                                        const TotalHash& result_hash,
                                                        Progress* progress);

// The base with the delta applied; its hash must equal info.result's. kDamaged if the delta does
// not fit the base or its indices do not increase.
Result<std::shared_ptr<const Checkpoint>> apply_delta(std::shared_ptr<const Checkpoint> base,
                                                      std::shared_ptr<const Checkpoint> delta,
                                                      const DeltaInfo& info, Progress* progress);

}  // namespace shw
