// The checkpoint is right and what the loader asks for is not: the same mistakes, made at load.
#pragma once

#include <string_view>
#include <vector>

#include "core/facts/facts.h"

namespace shw {

enum class RequestKind : std::uint8_t { kHalves, kOther };  // states of _w and _v; all others

// Optimizer states that are as large as their parameter on disk, where the spec asks for less: for
// `rule`, one warning, nothing to repair.
void add_wrong_requests(const Facts& facts, RequestKind kind, std::string_view rule,
                        std::string_view link, std::vector<Finding>& findings);

}  // namespace shw
