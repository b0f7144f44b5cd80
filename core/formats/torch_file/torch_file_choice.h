// Which file of a folder is the one of torch.save that it is about.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/formats/format_row.h"

namespace shw {

// By the endings that programs give it: .pt, .pth, .bin, .ckpt, .pth.tar.
NamedFile named_torch_file(std::string_view file);

// By first bytes: other archives begin with another record.
Result<bool> is_torch_archive(const DirectoryLook& look, const std::string& path);

// The one at the top that begins as such a file does. Of several that of the name under which
// transformers and PEFT keep a model beside what training leaves (training_args.bin, optimizer.pt);
// else nothing, for nobody says which is meant.
Result<std::optional<std::string>> torch_file_in(const DirectoryLook& look);

}  // namespace shw
