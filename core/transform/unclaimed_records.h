// Parts of a source's metadata that are neither tensors nor entries.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/formats/format_writer.h"

namespace shw {

// All attributes except the record of filled elements, which is rewritten.
std::vector<std::pair<std::string, std::string>> other_attributes(const Checkpoint& source);

// If files are kept: adds index records that belong to no entry, and names that were never saved.
void add_unclaimed_records(const Checkpoint& source, Outputs& outputs);

}  // namespace shw
