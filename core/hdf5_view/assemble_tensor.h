// Reads a tensor box by box, for copying; part of export_hdf5.cpp.
#pragma once

#include <optional>
#include <vector>

#include "core/base/progress.h"
#include "core/hdf5/hdf5_writer.h"
#include "core/model/checkpoint.h"

namespace shw {

// `unreadable`: receives an error of reading; a returned error is from writing.
Status put_together(const Checkpoint& checkpoint, const std::vector<ChunkId>& chunks,
                    const Hdf5Writer::WriteBox& write, std::optional<Error>& unreadable,
                    Progress* progress);

}  // namespace shw
