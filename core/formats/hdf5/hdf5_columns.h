// Datasets of one or several files on their way into the columns of a checkpoint.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/hdf5/hdf5_shards.h"
#include "core/model/builder.h"

namespace shw {

struct Hdf5Piece {
  std::string file;
  const Hdf5Array* array;
};

// bad-record.
Finding unreadable_part(std::string subject, std::string cause,
                        std::optional<std::uint64_t> at = std::nullopt);

// How many tiles that nobody wrote may be told of these files together.
std::size_t fill_tiles_of(const std::vector<Hdf5Shard>& shards);

// A tensor and the parts that several files have of it. `room`: fill_tiles_of() what is left.
void add_hdf5_tensor(CheckpointBuilder& builder, const std::string& fqn,
                     const std::vector<Hdf5Piece>& pieces, std::size_t& room);

}  // namespace shw
