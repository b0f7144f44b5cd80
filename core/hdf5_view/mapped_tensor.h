// Which bytes of which files are a tensor's elements, in a form that HDF5 can be told: as one list
// of segments, or as tiles of which each is one. What cannot be told, or is not there, is said in
// words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/formats/items.h"
#include "core/hdf5_view/mapped_tile.h"
#include "core/model/checkpoint.h"

namespace shw {

enum class Mapping : std::uint8_t {
  kSegments,  // `segments` are all of it, in row-major order; none where it has no elements
  kTiles,
  kNotInPlace,  // whole, but HDF5 cannot be told where it lies
  kPartly,      // `tiles` are what is there of it; may be none
  kRefused,     // there is nothing that HDF5 could hold
};

struct MappedTensor {
  Mapping mapping = Mapping::kRefused;
  std::vector<ByteRun> segments = {};
  std::vector<MappedTile> tiles = {};
  std::vector<ChunkId> chunks = {};  // of kNotInPlace: what it can be put together from
  std::string why = {};              // of kNotInPlace, kPartly and kRefused, one clause
  std::int64_t missing = 0;          // elements that are not there or cannot be trusted; of kPartly
  std::string note = {};             // what else is to be known of it
};

// Reads the headers of its items, and holds every run against the length of its file: HDF5 would
// read zeros past the end. Of tiles that were saved more than once it reads all bytes: copies that
// differ are refused. On any thread.
MappedTensor map_tensor(const Checkpoint& checkpoint, TensorId tensor);

}  // namespace shw
