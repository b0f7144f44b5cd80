// Chooses the torch.save file of a folder that contains the model.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/formats/format_row.h"

namespace shw {

// True for the usual suffixes: .pt, .pth, .bin, .ckpt, .pth.tar.
FileRole torch_file_role(std::string_view file);
// True for names without a suffix that end in a step, as programs for speech write: "g_00005000".
bool is_numbered_save(std::string_view path);

// Reads the first bytes: other archives begin with another record.
Result<bool> is_torch_archive(const DirectoryContents& look, const std::string& path);

// The torch.save file at the top of the folder. If there are several: the one whose name
// transformers or PEFT use for a model, or the only one that is not a file of training
// (training_args.bin, optimizer.pt). nullopt if the choice is not clear.
Result<std::optional<std::string>> torch_file_in(const DirectoryContents& look);

}  // namespace shw
