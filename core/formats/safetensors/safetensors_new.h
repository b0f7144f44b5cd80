// A plain checkpoint that is new: which file holds each tensor, and the index over them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/formats/format_writer.h"
#include "core/formats/part_homes.h"

namespace shw {

// The file of each tensor: "model.safetensors" (of its home's stem), or
// "model-00001-of-00002.safetensors" and so on. Filled as Hugging Face's libraries fill them: in
// the order of the tensors, each file until the next one would take it beyond `shard_bytes`; a
// tensor that is larger alone.
std::vector<std::string> split_into_files(const Outputs& outputs, const PartHomes& homes);

// "model.safetensors.index.json" of one home as Hugging Face's libraries write it; empty for one
// file.
std::string new_safetensors_index(const Outputs& outputs, const LaidOut& laid_out,
                                  const PartHomes& homes, const PartHome& home);

}  // namespace shw
