// One chunk of a checkpoint as HDF5 can be told of it: a part of mapped_tensor.cpp.
#pragma once

#include <string>
#include <variant>

#include "core/hdf5_view/mapped_tensor.h"

namespace shw {

// Why there is no MappedTile: its bytes are there and lie in another form, or cannot be had.
struct NoMapping {
  bool is_there = false;
  std::string why;
};
std::variant<MappedTile, NoMapping> map_tile(const Checkpoint& checkpoint, ChunkId chunk);

}  // namespace shw
