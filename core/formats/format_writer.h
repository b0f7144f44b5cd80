// Writing a format: where every byte of a new checkpoint goes is fixed before one moves, so that
// tiles can be written in any order, by any number of workers; what depends on the bytes comes
// last.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/io/source.h"
#include "core/model/checkpoint.h"

namespace shw {

// --- what it is to hold

struct OutputTile {
  Box box;
  std::uint32_t writer = 0;  // the rank that it is of
};
struct OutputTensor {
  std::string fqn;
  Dtype dtype = Dtype::kUnknown;
  bool requires_grad = false;
  Extents shape;
  std::vector<OutputTile> tiles;
  std::vector<PathPart> path = {};  // empty: the one part {fqn}
};
struct Outputs {
  std::vector<OutputTensor> tensors;
  std::string checkpoint_id = {};  // text only
  std::string save_id = {};
};

// --- where it goes

struct OutputRange {
  std::uint32_t file = 0;  // of LaidOut::files
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};
struct OutputBytes {
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  Bytes bytes;
};
struct LaidOut {
  struct File {
    std::string path;
    std::uint64_t size = 0;
  };
  std::vector<File> files;
  std::vector<OutputRange> tiles;   // elements, row-major and little-endian: tensor by tensor
  std::vector<OutputBytes> before;  // headers
};

// --- what is left when all tiles are there

struct Seal {
  std::vector<OutputBytes> after;                       // trailers
  std::vector<std::pair<std::string, Bytes>> metadata;  // whole files, in the order of writing
};

struct FormatWriter {
  Result<LaidOut> (*lay_out)(const Outputs& outputs);
  // `checksums`: the CRC-32 of every tile, as LaidOut::tiles.
  Result<Seal> (*seal)(const Outputs& outputs, const LaidOut& laid_out,
                       std::span<const std::uint32_t> checksums);
};

// The bytes that a tile takes; nothing where its box or dtype cannot be.
std::optional<std::uint64_t> bytes_of(const OutputTensor& tensor, const OutputTile& tile);

}  // namespace shw
