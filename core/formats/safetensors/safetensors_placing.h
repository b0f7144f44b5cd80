// Chooses the safetensors file of each chunk, and the changes of every file of the source.
//
// A file contains a tensor at most once. In a plain (consolidated) checkpoint a tensor is one chunk
// in one file. In the sharded form a written chunk goes to the file that held its source data, else
// to one of the same rank, else to any file without a shard of the tensor, else to a new one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/formats/format_writer.h"
#include "core/formats/safetensors/safetensors_rewrite.h"

namespace shw {

struct PlacedTiles {
  struct Made {
    std::uint32_t tensor = 0, tile = 0;  // indices in Outputs
    std::string path;
    std::string name;  // in the file
  };
  std::vector<Made> made;                            // in the order of Outputs
  std::map<std::string, SafetensorsChange> changes;  // by file
  // By new file: the source file whose metadata it copies; an empty text in a first save.
  std::map<std::string, std::string> added;
};

// `source`: the checkpoint whose files are rewritten; null for a first save.
Result<PlacedTiles> place_safetensors(const Outputs& outputs, const Checkpoint* source,
                                      bool sharded);

}  // namespace shw
