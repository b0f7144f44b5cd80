// Files that several ranks of a machine write: the owner creates them before the first write, and
// finishes them after all ranks have reported their parts.
#pragma once

#include "core/exec/file_writer.h"
#include "core/exec/part_assignment.h"

namespace shw {

// Creates the shared files that this rank owns.
Status create_shared_files(const PartAssignment& dealt, std::uint32_t self, FileWriter& writer);
// Makes this rank's parts of other owners' files durable; returns the report for the owners.
Result<Bytes> finish_own_parts_of_shared_files(const PartAssignment& dealt, std::uint32_t self,
                                               FileWriter& writer);
Status finish_shared_files(const PartAssignment& dealt, std::uint32_t self, FileWriter& writer);

}  // namespace shw
