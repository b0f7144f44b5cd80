// Files that several workers of a machine write: one creates them before anybody writes, and
// finishes them when all have said what became of their parts.
#pragma once

#include "core/exec/deal_parts.h"
#include "core/exec/file_writer.h"

namespace shw {

// Those that this worker owns.
Status create_shared(const DealtParts& dealt, std::uint32_t self, FileWriter& writer);
// Its parts of those that others own are durable; what these have to know of them.
Result<Bytes> leave_shared(const DealtParts& dealt, std::uint32_t self, FileWriter& writer);
Status finish_shared(const DealtParts& dealt, std::uint32_t self, FileWriter& writer);

}  // namespace shw
