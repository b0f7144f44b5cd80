// A path may ask for a checkpoint whose quantised weights read as numbers: "hf/@dequantised". All
// that looks at a checkpoint, compares it or makes another of it then sees the weights decoded.
#pragma once

#include <memory>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw::verbs {

inline constexpr std::string_view kDequantisedPath = "/@dequantised";

// open_checkpoint, and what the end of the path asks for.
Result<std::shared_ptr<const Checkpoint>> open_as_asked(const std::string& path,
                                                        Progress* progress);
// open_to_compare, likewise: errors name files as they are seen from outside.
Result<std::shared_ptr<const Checkpoint>> open_as_asked_to_compare(const std::string& path,
                                                                   Progress* progress);

}  // namespace shw::verbs
