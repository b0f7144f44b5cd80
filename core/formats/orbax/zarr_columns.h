// Adds zarr arrays as tensors: a chunk of the grid, or an inner chunk of a shard, becomes a chunk.
#pragma once

#include <string>
#include <vector>

#include "core/formats/orbax/stored_keys.h"
#include "core/formats/orbax/zarr_array.h"
#include "core/model/builder.h"

namespace shw {

// Meaning of a missing chunk.
enum class AbsentChunks : std::uint8_t {
  kReportAsMissing,  // all chunks were written (`store_array_data_equal_to_fill_value`), so it is
                     // lost
  kReadAsZeros,      // chunks of only the fill value are not written
};

struct ZarrStore {
  const FolderWithNodes& folder;
  std::vector<StoredKey> keys;  // sorted
  std::string prefix;           // prefix of tensor names
  AbsentChunks absent = AbsentChunks::kReadAsZeros;
};

// Returns the names of the arrays that were added or reported.
Result<std::vector<std::string>> add_zarr_arrays(CheckpointBuilder& builder, const ZarrStore& store,
                                                 const Progress* progress);

}  // namespace shw
