// What a lossy repair gave up: lost.json beside the certificate, so that a trainer can mask or
// reset exactly those elements.
//
//   {"schema": "shardwright/1", "total", "kept", "lost",
//    "tensors": {fqn: {"shape", "total", "kept", "lost", "fill", "fill_from", "fill_checkpoint",
//                      "lost_boxes": [{"offsets", "sizes"}]}}}
//
// Only tensors that lose something; kept + lost = total everywhere.
#pragma once

#include <string>

#include "core/repair/apply.h"

namespace shw {

inline constexpr const char* kLostFile = "lost.json";

std::string lost_to_json(const Certificate& certificate);

}  // namespace shw
