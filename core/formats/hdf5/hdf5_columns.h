// Datasets of one or several files on their way into the columns of a checkpoint.
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

// What all tensors of a checkpoint share.
struct Hdf5Limits {
  std::size_t fill_tiles = 0;             // that nobody wrote, and that may still be told
  std::uint64_t fill_bytes = 0;           // of them: a shape of a few bytes may say any number
  std::set<std::int64_t> tile_rows = {};  // kTileRows that were told
};
Hdf5Limits hdf5_limits(const std::vector<Hdf5Shard>& shards);

// A tensor and the parts that several files have of it.
void add_hdf5_tensor(CheckpointBuilder& builder, const std::string& fqn,
                     const std::vector<Hdf5Piece>& pieces, Hdf5Limits& limits);

}  // namespace shw
