// Correct checkpoints for which the spec (the load request) makes the known mistakes.
#pragma once

#include <string_view>
#include <vector>

#include "core/facts/facts.h"

namespace shw {

enum class RequestKind : std::uint8_t { kHalves, kOther };  // states of _w and _v; all others

// Reports optimizer states that have the size of their parameter while the spec requests less: one
// warning of `rule` without repair.
void report_wrong_requests(const Facts& facts, RequestKind kind, std::string_view rule,
                           std::string_view link, std::vector<Finding>& findings);

}  // namespace shw
