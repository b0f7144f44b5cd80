// A Llama model in Meta's own format: one torch.save file per tensor-parallel rank,
// consolidated.00.pth, consolidated.01.pth, ... A single file has this format if params.json is
// next to it, and is an ordinary torch.save file otherwise.
#pragma once

#include "core/formats/format_row.h"
#include "core/formats/tensor_split.h"

namespace shw {

// The rank in "consolidated.03.pth"; nullopt for other names.
std::optional<std::uint32_t> parse_meta_file(std::string_view name);
// Axis by layer (llama/model.py: ColumnParallelLinear splits axis 0, RowParallelLinear axis 1). For
// the embedding it follows from the shapes: Llama 2 splits its width, Llama 3 its vocabulary.
TensorSplit meta_tensor_split(std::string_view name, const Extents& local,
                              std::optional<std::int64_t> width, std::uint32_t ranks);

OpenedCheckpoint open_meta_llama(std::shared_ptr<const Directory> directory, Progress* progress);

extern const FormatRow kMetaLlamaRow;

}  // namespace shw
