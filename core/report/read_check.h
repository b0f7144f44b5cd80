// Reads an answer of `check --json`, such as that of another machine. What the answer lacks: the
// diagnoses from which plans are made, and the spec.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/base/result.h"
#include "core/rules/check.h"

namespace shw {

// A hundred bytes of memory for a value: 2 GB for the most.
inline constexpr std::size_t kMaxValuesOfCheck = 20'000'000;

// An answer that is an error is returned as that error. Keys that this version does not know are
// left out before they take memory; an answer of more than `most` other values is refused.
Result<CheckReport> check_from_json(std::string_view text, std::size_t most = kMaxValuesOfCheck);

}  // namespace shw
