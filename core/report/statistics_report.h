// Statistics of tensors as JSON and text.
#pragma once

#include <span>
#include <string>

#include "core/facts/values/tensor_statistics.h"
#include "core/report/listing.h"

namespace shw {

struct DeviceUse;

// {"tensors": {fqn: {"dtype", "shape", "elements", "nan", "inf", "zero", "denormal", "min", "max",
//                    "mean", "std", "histogram": [{"sign", "exponent", "count"}]}}}
// Numbers that do not exist are null; "min" and "max" are exact, as doubles. A tensor has
// "missing", "unread", "repeated", "at_least" and "error" only if not all of it was read, and
// "note" if its dtype has no numbers. "device" computed them; null: not stated. "unread", if any:
// files and records with unknown tensors.
std::string statistics_to_json(std::span<const TensorStatistics> tensors,
                               const DeviceUse* device = nullptr,
                               std::span<const std::string> unread = {});

// One line per tensor, as wide as the terminal. Tensors that are not whole or unhealthy come first.
std::string statistics_to_text(std::span<const TensorStatistics> tensors, const TextStyle& style,
                               std::span<const std::string> unread = {});

}  // namespace shw
