// What makes one checkpoint of another one: the elements that changed, exactly. A delta is a
// checkpoint itself, with delta.json beside it:
//
//   NAME.delta_indices   [n] int32, int64 above 2^31 elements: row-major, increasing
//   NAME.delta_values    [n] in the tensor's dtype: what stands there
//   NAME.delta_whole     the tensor, where it is new, of another shape or dtype, or most of it
//                        changed
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

struct HashOfAll {
  std::string hash;
  std::size_t tensors = 0;
};
struct DeltaInfo {
  HashOfAll base, result;
  std::vector<std::string> dropped;  // tensors of the base that the result does not have
};
// kUsage where the folder has no delta.json, kDamaged where it is another file.
Result<DeltaInfo> read_delta_info(const Directory& folder);

// Compares every element of both by its bits.
Result<std::shared_ptr<const Checkpoint>> delta_of(std::shared_ptr<const Checkpoint> base,
                                                   std::shared_ptr<const Checkpoint> result,
                                                   const HashOfAll& base_hash,
                                                   const HashOfAll& result_hash,
                                                   Progress* progress);

// The base as the delta changes it; its hash has to be info.result's. kDamaged where
// the delta does not fit it or its indices are no increasing ones.
Result<std::shared_ptr<const Checkpoint>> with_delta(std::shared_ptr<const Checkpoint> base,
                                                     std::shared_ptr<const Checkpoint> delta,
                                                     const DeltaInfo& info, Progress* progress);

}  // namespace shw
