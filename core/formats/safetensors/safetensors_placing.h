// Which safetensors file holds each tile, and what every file of the source becomes.
//
// A file holds a tensor at most once. In a plain (consolidated) checkpoint a tensor is one piece in
// one file; in the sharded form a tile that is made goes to the file that held what it is made of,
// else to one of the same rank, else to any that has no shard of the tensor yet, else to a new one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/formats/format_writer.h"
#include "core/formats/safetensors/safetensors_rewrite.h"

namespace shw {

struct PlacedTiles {
  struct Made {
    std::uint32_t tensor = 0, tile = 0;  // of Outputs
    std::string path;
    std::string name;  // in the file
  };
  std::vector<Made> made;                            // in the order of Outputs
  std::map<std::string, SafetensorsChange> changes;  // by file
  // New files, and the one of the source whose metadata each has; empty: those of a first save.
  std::map<std::string, std::string> added;
};

// `source`: whose files are written anew; null for a first save.
Result<PlacedTiles> place_safetensors(const Outputs& outputs, const Checkpoint* source,
                                      bool sharded);

}  // namespace shw
