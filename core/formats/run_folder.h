// Interprets a folder that is not a checkpoint itself but was written by a trainer or library: a
// run of steps, or the parts of one model. Uses tracker files and the contents of subfolders.
//
//   tracker = latest | latest_universal         DeepSpeed and others: the folder's name
//           | latest_checkpointed_iteration.txt Megatron, verl: N of iter_%07d or global_step_N
//   steps   = folders whose names differ only in numbers
//   parts   = folders of a pipeline (model_index.json), of a model with modules (modules.json),
//             or of a model and its optimizer (pytorch_model_fsdp_0, optimizer_0)
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/formats/chosen_step.h"
#include "core/formats/format_row.h"

namespace shw {

Result<std::optional<ChosenStep>> chosen_step(const DirectoryContents& look,
                                              std::span<const FormatRow> rows);
struct FolderPart {
  std::string folder;
  std::string prefix;  // prefix of its tensor names: "unet."
};
// Empty if the subfolders are not the parts of one model.
std::vector<FolderPart> folder_parts(std::span<const Entry> entries,
                                     std::span<const FormatRow> rows);

}  // namespace shw
