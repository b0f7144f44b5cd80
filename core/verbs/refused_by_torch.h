// Entries of a torch.save file that torch.load refuses by default because they need other code,
// such as numpy scalars or an argparse.Namespace.
#pragma once

#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"

namespace shw::verbs {

struct TorchRefusals {
  std::vector<std::string> entries;
  std::string first_name;  // name of the first refused class: "argparse.Namespace"
};
// Checks the entries with these indices, as a conversion would write them.
TorchRefusals find_torch_refusals(const Checkpoint& checkpoint,
                                  const std::vector<std::size_t>& objects, Progress* progress);

// Text about the consequence and the option that omits the entries; empty if none is refused.
std::string in_words(const TorchRefusals& refused);

}  // namespace shw::verbs
