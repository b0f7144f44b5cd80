// Data files of two ranks that hold the same items, byte for byte: one was copied over the other.
#pragma once

#include <vector>

#include "core/facts/facts.h"

namespace shw {

// From Depth::kHeaders on, by the checksums of items; files without them say nothing.
void report_equal_files(const Facts& facts, std::vector<Finding>& findings);

}  // namespace shw
