// Layout of a new plain checkpoint: the file of each tensor, and the index.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/formats/format_writer.h"
#include "core/formats/part_locations.h"

namespace shw {

// The file of each tensor: "model.safetensors" (with its home's stem), or
// "model-00001-of-00002.safetensors" and so on. As in Hugging Face's libraries, files are filled in
// the order of tensors, each until the next tensor would exceed `shard_bytes`; a larger tensor gets
// a file of its own.
std::vector<std::string> split_into_files(const Outputs& outputs, const PartLocations& homes);

// "model.safetensors.index.json" of one home as Hugging Face's libraries write it; empty if there
// is only one file.
std::string new_safetensors_index(const Outputs& outputs, const LaidOut& laid_out,
                                  const PartLocations& homes, const PartLocation& home);

}  // namespace shw
