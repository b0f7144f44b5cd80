// Arrays of zarr as tensors of a checkpoint: a chunk of the grid, or a piece of a shard, is a
// chunk.
#pragma once

#include <string>
#include <vector>

#include "core/formats/orbax/stored_keys.h"
#include "core/formats/orbax/zarr_array.h"
#include "core/model/builder.h"

namespace shw {

// What may be taken for granted of chunks that are not there.
enum class AbsentChunks : std::uint8_t {
  kAreLost,   // all chunks were written: `store_array_data_equal_to_fill_value`
  kAreZeros,  // one whose elements are all the fill value was not
};

struct ZarrStore {
  const FolderWithNodes& folder;
  std::vector<StoredKey> keys;  // sorted
  std::string prefix;           // before the names of tensors
  AbsentChunks absent = AbsentChunks::kAreZeros;
};

// The names of the arrays that were added, or of which something was said.
Result<std::vector<std::string>> add_zarr_arrays(CheckpointBuilder& builder, const ZarrStore& store,
                                                 const Progress* progress);

}  // namespace shw
