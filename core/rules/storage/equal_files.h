// Data files of two ranks that hold the same items, byte for byte: one was copied over the other.
#pragma once

#include <vector>

#include "core/facts/facts.h"

namespace shw {

// From Depth::kHeaders on, by the checksums of items; files without them say nothing.
void report_equal_files(const Facts& facts, std::vector<Finding>& findings);

// No two of its tiles are alike once they were trained. Experts may be copies of one dense layer,
// layers on an axis of their own as well.
bool has_tiles_that_differ(const Checkpoint& checkpoint, TensorId tensor);

}  // namespace shw
