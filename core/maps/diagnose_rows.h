// How a tensor that was converted wrongly came about: which of the known mistakes gives the
// elements that are there. Every mistake is tried on the bytes; names alone prove nothing.
#pragma once

#include <optional>
#include <string>

#include "core/maps/held_tensor.h"

namespace shw {

// `there` is not `expected`: why, in words. Nothing where no known mistake gives these elements.
std::optional<std::string> wrong_conversion(const HeldTensor& there, const HeldTensor& expected,
                                            const RowLayout& layout);

// The same of elements that are other numbers (diagnose_values.cpp).
std::optional<std::string> wrong_values(const HeldTensor& there, const HeldTensor& expected);

}  // namespace shw
