// Data files that are the same file on disk, so that one rank's data is read as another's.
#pragma once

#include <vector>

#include "core/facts/facts.h"
#include "core/facts/storage/shared_ranges.h"

namespace shw {

// For each file the first one with the same inode; empty if all are
// distinct.
std::vector<FileId> first_file_per_inode(const Checkpoint& checkpoint);

// True if the claims of the range are in files with different names.
bool spans_files(const Checkpoint& checkpoint, const SharedRange& range);

// `ranges`: those that span several names.
void report_linked_files(const Facts& facts, const std::vector<SharedRange>& ranges,
                         std::vector<Finding>& findings);

}  // namespace shw
