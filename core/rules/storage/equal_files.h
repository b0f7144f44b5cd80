// Data files of two ranks with equal items: one file was copied over the other.
#pragma once

#include <vector>

#include "core/facts/facts.h"

namespace shw {

// From Depth::kHeaders on, using item checksums; files without them are skipped.
void report_equal_files(const Facts& facts, std::vector<Finding>& findings);

// True if trained chunks of this tensor must differ: experts may be copies of a dense layer, and so
// may layers on an axis of their own.
bool must_have_distinct_tiles(const Checkpoint& checkpoint, TensorId tensor);

}  // namespace shw
