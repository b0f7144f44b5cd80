// What the numbers of tensors are like, for programs and for people.
#pragma once

#include <span>
#include <string>

#include "core/facts/values/tensor_statistics.h"
#include "core/report/listing.h"

namespace shw {

struct DeviceUse;

// {"tensors": {fqn: {"dtype", "shape", "elements", "nan", "inf", "zero", "denormal", "min", "max",
//                    "mean", "std", "histogram": [{"sign", "exponent", "count"}]}}}, null where
// there is no such number; "min" and "max" to the bit, as doubles; "missing", "unread", "repeated",
// "at_least", "error" only where the numbers are not those of the whole tensor, "note" where the
// dtype has none. And "device": what counted them; null: nobody says. "unread" where there
// are any: what tensors they hold nobody knows.
std::string statistics_to_json(std::span<const TensorStatistics> tensors,
                               const DeviceUse* device = nullptr,
                               std::span<const std::string> unread = {});

// A line a tensor, as wide as the terminal: first those that are not whole or hold what no healthy
// tensor holds.
std::string statistics_to_text(std::span<const TensorStatistics> tensors, const TextStyle& style,
                               std::span<const std::string> unread = {});

}  // namespace shw
