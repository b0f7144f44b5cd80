// Decodes FP4 with a power of two per group.
#pragma once

#include <string>

#include "core/facts/values/quant_source.h"

namespace shw {

// gpt-oss stores [experts, rows, groups, 16] bytes; the model's parameter has rows and columns
// swapped.
Result<DecodedWeight> mx_decoder(const QuantSource& from);
// Decodes rows of two numbers per byte, low halves first, in the model's orientation. `fqn`: name
// of the decoded weight.
Result<DecodedWeight> mx_rows_decoder(const QuantSource& from, std::string fqn);
// True if the scale companion holds exponents: F8_E8M0, or the same as bytes.
bool has_exponents(const QuantSource& from);

}  // namespace shw
