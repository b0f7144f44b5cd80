// What the metadata of a source says beside tensors and entries.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/formats/format_writer.h"

namespace shw {

// But for the record of what is filled, which is written anew.
std::vector<std::pair<std::string, std::string>> other_attributes(const Checkpoint& source);

// Where files of the source stay: records of its index that belong to no entry, and names that were
// never saved.
void add_left_records(const Checkpoint& source, Outputs& outputs);

}  // namespace shw
