// A Llama in the form that Meta gives it to people: one torch.save file per tensor-parallel rank,
// consolidated.00.pth, consolidated.01.pth, ... A file alone is of this form where params.json lies
// beside it, and a file of torch.save elsewhere.
#pragma once

#include "core/formats/format_row.h"
#include "core/formats/tensor_cut.h"

namespace shw {

// "consolidated.03.pth"
std::optional<std::uint32_t> parse_meta_file(std::string_view name);
// By the layer that a parameter is of (llama/model.py: ColumnParallelLinear cuts axis 0,
// RowParallelLinear axis 1). Of the embedding it follows from the shapes: Llama 2 cuts its width,
// Llama 3 its words.
TensorCut meta_cut(std::string_view name, const Extents& local, std::optional<std::int64_t> width,
                   std::uint32_t ranks);

OpenedCheckpoint open_meta_llama(std::shared_ptr<const Directory> directory, Progress* progress);

extern const FormatRow kMetaLlamaRow;

}  // namespace shw
