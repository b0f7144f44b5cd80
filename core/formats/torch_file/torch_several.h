// A folder of several files of torch.save without an index: one checkpoint all the same.
//
//   names that no two files share       the files are parts of one: model.pt beside optimizer.pt
//   names that are alike, and files     steps or copies of one model: the last one by its name is
//   that are alike but for a number     opened, the others are said
//   anything else                       every file's tensors, with its name in front
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/formats/format_row.h"

namespace shw {

struct TorchSeveral {
  std::vector<std::string> paths = {};  // to be read
  bool is_prefixed = false;             // each with its stem in front of its names
  std::vector<std::string> aside = {};  // the other steps
};
// Nothing where there are fewer than two files of weights. Files that cannot be opened have no
// names.
Result<std::optional<TorchSeveral>> torch_several_in(const DirectoryLook& look);
// The same by names alone, without opening one.
Result<bool> has_torch_several(const DirectoryLook& look);

// "model" of "model.pt".
std::string torch_stem(const std::string& path);
// What was opened and why, of more than one.
Finding told_several(const TorchSeveral& several);

}  // namespace shw
