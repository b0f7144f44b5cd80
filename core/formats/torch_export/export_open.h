// Programs that torch.export.save wrote (.pt2): a zip archive with the graph, which is not read,
// and the tensors. Forms:
//
//   torch 2.9 and later: data/weights/NAME_weights_config.json (export_config.h) next to records of
//     elements, and the same for data/constants
//   torch 2.8:           data/weights/NAME.pt and data/constants/NAME.pt, of torch.save
//   before:              serialized_state_dict.pt and serialized_constants.pt
//
// A package that AOTInductor compiled has its weights in a library, and is refused by name.
#pragma once

#include <memory>

#include "core/formats/format_row.h"

namespace shw {

inline constexpr std::string_view kExportSuffix = ".pt2";

extern const Format kTorchExportFormat;
OpenedCheckpoint open_torch_export(std::shared_ptr<const Directory> directory, Progress* progress);

}  // namespace shw
