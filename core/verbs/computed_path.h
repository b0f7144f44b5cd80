// Paths that ask for a checkpoint computed from another one while it is read:
//
//   hf/@dequantised             quantised weights as the numbers that they stand for
//   hf/@quantised:fp8-block     weights in 8 or 4 bits (core/combine/quantised.h)
//   gemma/@norms:-1             norm weights less 1, or plus 1 (core/combine/shift_norm_weights.h)
//   iter_100/@as:hf             names and layouts of another program (mapped_view.h)
//   ck-500/@optimizer           Trainer's optimizer.pt by names of parameters (trainer_folder.h);
//                               ck-500/@optimizer=names.txt gives their order
//   base/@merged=adapter        a LoRA adapter added to its base (core/combine/merge_adapter.h)
//   a/@average=b,c              average of a, b and c; a/@average:0.5,0.3,0.2=b,c with weights
//   base/@delta-to=tuned        the difference from base to tuned (core/combine/delta.h)
//   base/@applied=delta         base plus the difference, which is tuned again
//   tuned/@adapter:16=base      that difference as LoRA matrices of rank 16
//                               (core/combine/extract_adapter.h)
//
// Every verb that reads, compares or converts checkpoints accepts such paths, and several can be
// chained: "base/@dequantised/@merged=adapter". Other paths have no comma and no "/@".
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw::verbs {

inline constexpr std::string_view kDequantisedPath = "/@dequantised";

// kUsage if the path of an input contains a comma or "/@", which separate the parts of a computed
// path.
Status check_input_path(const std::string& path);
std::string quantised_path(const std::string& path, const std::string& scheme);
std::string merged_path(const std::string& base, const std::string& adapter);
// Path of an average. `weights`: one number per path, including `first`, separated by commas;
// empty: equal weights. `are_dequantised`: dequantises the others too.
std::string average_path(const std::string& first, const std::vector<std::string>& others,
                         const std::string& weights, bool are_dequantised);
std::string delta_path(const std::string& base, const std::string& result);
std::string applied_path(const std::string& base, const std::string& delta);
std::string adapter_path(const std::string& tuned, const std::string& base, std::int64_t rank);

// Like open_checkpoint(); also computes the checkpoint that an ending such as "/@merged=ADAPTER"
// names.
Result<std::shared_ptr<const Checkpoint>> open_requested(const std::string& path,
                                                         Progress* progress);
// Like open_to_compare(), for paths with such an ending too: errors show paths relative to the
// working directory.
Result<std::shared_ptr<const Checkpoint>> open_requested_for_comparison(const std::string& path,
                                                                        Progress* progress);

}  // namespace shw::verbs
