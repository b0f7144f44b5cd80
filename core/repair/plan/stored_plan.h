// Encodes a plan for the certificate of its result. Plan and source checkpoint together determine
// the expected place of every element.
#pragma once

#include <string>

#include "core/base/result.h"

namespace shw {

// Encodes a plan for the certificate: readable JSON, or compressed if above 64 KiB, because a plan
// has a line for every tile that it moves.
std::string encode_stored_plan(std::string plan);
// Decodes the JSON of the plan. kDamaged if it cannot be decompressed.
Result<std::string> decode_stored_plan(const std::string& kept);

}  // namespace shw
