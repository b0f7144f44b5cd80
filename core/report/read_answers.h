// Reads the answers of `verify --json` and `diff --json`, such as those of another machine.
#pragma once

#include <string_view>

#include "core/base/result.h"
#include "core/compare/difference.h"
#include "core/repair/proof/verify_report.h"

namespace shw {

// The error that an answer of `verb` is, or the reason why it is not an answer of this version.
Status check_answer(std::string_view text, const char* verb);
// Reads a report of `verify`; its comparison with a source is left empty.
Result<VerifyReport> verify_from_json(std::string_view text);
// Reads an answer of `diff`; its texts about a map between two programs are left empty.
Result<CheckpointDifference> difference_from_json(std::string_view text);

}  // namespace shw
