// Maps a tensor's elements to byte ranges of files as HDF5 can express it:
// one list of segments, or tiles with one each. Otherwise the reason in
// words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/formats/items/items.h"
#include "core/hdf5_view/mapped_tile.h"
#include "core/model/checkpoint.h"

namespace shw {

enum class Mapping : std::uint8_t {
  kSegments,  // `segments` are the whole tensor in row-major order; none if it has no elements
  kTiles,
  kNotInPlace,  // complete, but HDF5 cannot express its layout
  kPartly,      // `tiles` are the readable ones; may be empty
  kRefused,     // HDF5 cannot represent it at all
};

struct MappedTensor {
  Mapping mapping = Mapping::kRefused;
  std::vector<ByteRun> segments = {};
  std::vector<MappedTile> tiles = {};
  std::vector<ChunkId> chunks = {};  // for kNotInPlace: the sources of a copy
  std::string why = {};              // for kNotInPlace, kPartly and kRefused, one clause
  std::int64_t missing = 0;          // for kPartly: missing or untrusted elements
  std::string note = {};             // a further remark
};

// Reads the headers of the items, and compares runs with file lengths because HDF5 would read zeros
// beyond the end. For replicated tiles it reads all bytes, and rejects replicas that differ.
// Thread-safe.
MappedTensor map_tensor(const Checkpoint& checkpoint, TensorId tensor);

}  // namespace shw
