// Data files that are one file on disk: what one rank wrote is read as what another one did.
#pragma once

#include <vector>

#include "core/facts/facts.h"
#include "core/facts/storage/shared_ranges.h"

namespace shw {

// For each file the first one that it is the same as, by inode; empty where each is a file of its
// own.
std::vector<FileId> real_files(const Checkpoint& checkpoint);

// Its claims lie in files of different names.
bool spans_files(const Checkpoint& checkpoint, const SharedRange& range);

// `ranges`: those that span files.
void report_linked_files(const Facts& facts, const std::vector<SharedRange>& ranges,
                         std::vector<Finding>& findings);

}  // namespace shw
