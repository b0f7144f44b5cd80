// A plain checkpoint that is new: which file holds each tensor, and the index over them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/formats/format_writer.h"
#include "core/formats/part_homes.h"

namespace shw {

// kUnsupported names all that no safetensors file can say: dtypes that it has no word for, entries
// that are no tensors; of a plain checkpoint (not `sharded`) also tensors in pieces.
Status check_safetensors_can_say(const Outputs& outputs, bool sharded);

// The file of each tensor: "model.safetensors" (of its home's stem), or
// "model-00001-of-00002.safetensors" and so on. Filled as Hugging Face's libraries fill them: in
// the order of the tensors, each file until the next one would take it beyond `shard_bytes`; a
// tensor that is larger alone.
std::vector<std::string> split_into_files(const Outputs& outputs, const PartHomes& homes);

// "model.safetensors.index.json" of one home as Hugging Face's libraries write it; empty for one
// file.
std::string new_safetensors_index(const Outputs& outputs, const LaidOut& laid_out,
                                  const PartHomes& homes, const PartHome& home);

// "BF16"; empty where safetensors has no word for it.
std::string_view safetensors_word(Dtype dtype);
// Where the reference implementation puts the tensors of a dtype: of higher ones first, then by
// name. 0 for a word that it does not have.
std::size_t safetensors_order(std::string_view dtype_text);

}  // namespace shw
