// Finds which known mistake turns the expected tensor into the saved one. Every mistake is tried on
// the bytes; names alone prove nothing.
#pragma once

#include <optional>
#include <string>

#include "core/maps/loaded_tensor.h"
#include "core/maps/mistake.h"

namespace shw {

// Explains why `there` is not `expected`; nullopt if no known mistake gives these elements.
std::optional<Mistake> diagnose_conversion(const LoadedTensor& there, const LoadedTensor& expected,
                                           const RowLayout& layout);

// True if the last two dims of `expected` are swapped in `there`, below any stacked dims.
bool are_transposed_cells(const LoadedTensor& there, const LoadedTensor& expected);

// Like diagnose_conversion() in words, for elements with other values (diagnose_values.cpp).
std::optional<std::string> diagnose_values(const LoadedTensor& there, const LoadedTensor& expected);

}  // namespace shw
