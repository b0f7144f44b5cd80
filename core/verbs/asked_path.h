// A path may ask for a checkpoint that is computed of what lies there while it is read:
//
//   hf/@dequantised             quantised weights as the numbers that they stand for
//   hf/@quantised:fp8-block     weights in 8 or 4 bits (core/combine/quantised.h)
//   gemma/@norms:-1             norm weights less 1, or with 1 more (core/combine/shifted_norms.h)
//   iter_100/@as:hf             names and layouts of another program (mapped_view.h)
//   base/@merged=adapter        a LoRA adapter added to its base (core/combine/merged_adapter.h)
//   a/@average=b,c              a, b and c averaged; a/@average:0.5,0.3,0.2=b,c with their weights
//   base/@delta-to=tuned        what makes the second of the first (core/combine/delta.h)
//   base/@applied=delta         the second again
//   tuned/@adapter:16=base      what it learned as LoRA matrices of rank 16
//                               (core/combine/extracted_adapter.h)
//
// All that looks at a checkpoint, compares it or makes another of it takes them, and they can
// follow one another: "base/@dequantised/@merged=adapter". Other paths have no comma and no "/@".
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

std::string quantised_path(const std::string& path, const std::string& scheme);
std::string merged_path(const std::string& base, const std::string& adapter);
// `weights`: a number for each path, the first included, parted by commas; empty: all the same.
// `are_dequantised`: the others are, too.
std::string average_path(const std::string& first, const std::vector<std::string>& others,
                         const std::string& weights, bool are_dequantised);
std::string delta_path(const std::string& base, const std::string& result);
std::string applied_path(const std::string& base, const std::string& delta);
std::string adapter_path(const std::string& tuned, const std::string& base, std::int64_t rank);

// open_checkpoint, and what the end of the path asks for.
Result<std::shared_ptr<const Checkpoint>> open_as_asked(const std::string& path,
                                                        Progress* progress);
// open_to_compare, likewise: errors name files as they are seen from outside.
Result<std::shared_ptr<const Checkpoint>> open_as_asked_to_compare(const std::string& path,
                                                                   Progress* progress);

}  // namespace shw::verbs
