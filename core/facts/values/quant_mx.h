// FP4 with a power of two for each group.
#pragma once

#include <string>

#include "core/facts/values/quant_source.h"

namespace shw {

// gpt-oss: [experts, rows, groups, 16] bytes; the model has rows and columns the other way round.
Result<DecodedWeight> mx_form(const QuantSource& from);
// Any number of rows of two numbers to a byte, low halves first, as the model has them. `fqn`: of
// the decoded weight.
Result<DecodedWeight> mx_rows_form(const QuantSource& from, std::string fqn);
// Whether the scale beside the weight holds exponents: F8_E8M0, or the same as a byte.
bool has_exponents(const QuantSource& from);

}  // namespace shw
