// Adds datasets of one or several files to a checkpoint.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/formats/hdf5/hdf5_shards.h"
#include "core/model/builder.h"

namespace shw {

struct Hdf5Piece {
  std::string file;
  const Hdf5Array* array;
};

// Limits shared by all tensors of a checkpoint.
struct Hdf5Limits {
  std::size_t fill_tiles = 0;             // remaining number of unwritten tiles
  std::uint64_t fill_bytes = 0;           // remaining bytes of unwritten tiles
  std::set<std::int64_t> tile_rows = {};  // kTileRows in use
};
Hdf5Limits hdf5_limits(const std::vector<Hdf5Shard>& shards);

// Adds a tensor from its parts in several files.
void add_hdf5_tensor(CheckpointBuilder& builder, const std::string& fqn,
                     const std::vector<Hdf5Piece>& pieces, Hdf5Limits& limits);

}  // namespace shw
