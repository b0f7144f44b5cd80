// Reads an answer of `check --json`, such as that of another machine. What the answer lacks: the
// diagnoses from which plans are made, and the spec.
#pragma once

#include <string_view>

#include "core/base/result.h"
#include "core/rules/check.h"

namespace shw {

// An answer that is an error is returned as that error.
Result<CheckReport> check_from_json(std::string_view text);

}  // namespace shw
