// What a folder is about that is not a checkpoint itself, but that a trainer or
// a library wrote: a run of steps, or the parts of one model. Told by trackers
// and by what lies in its folders.
//
//   tracker = latest | latest_universal         DeepSpeed and others: the
//   folder's name
//           | latest_checkpointed_iteration.txt Megatron, verl: N of iter_%07d
//           or global_step_N
//   steps   = folders that are alike but for their numbers
//   parts   = folders of a pipeline (model_index.json), of a model with modules
//   (modules.json),
//             or a model's beside its optimizer's (pytorch_model_fsdp_0,
//             optimizer_0)
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/formats/chosen_step.h"
#include "core/formats/format_row.h"

namespace shw {

Result<std::optional<ChosenStep>> chosen_step(const DirectoryLook& look,
                                              std::span<const FormatRow> rows);
// Of a folder of several .ckpt files, as Lightning leaves them: last.ckpt, or the one with the
// greatest numbers. `folder` is then the file.
std::optional<ChosenStep> chosen_file(std::span<const Entry> entries);
struct FolderPart {
  std::string folder;
  std::string prefix;  // before the names of its tensors: "unet."
};
// Empty where the folders are not the parts of one model.
std::vector<FolderPart> folder_parts(std::span<const Entry> entries,
                                     std::span<const FormatRow> rows);

}  // namespace shw
