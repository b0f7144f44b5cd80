// Entries of a file of torch.save that torch.load refuses unless it is told to run what the file
// names: numpy's numbers, an argparse.Namespace.
#pragma once

#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"

namespace shw::verbs {

struct RefusedByTorch {
  std::vector<std::string> entries;
  std::string first_name;  // "argparse.Namespace", in the first of them
};
// Of the objects of these indices, as a conversion would write them.
RefusedByTorch refused_by_torch(const Checkpoint& checkpoint,
                                const std::vector<std::size_t>& objects, Progress* progress);

// What will happen, and what leaves it out; empty where nothing is refused.
std::string in_words(const RefusedByTorch& refused);

}  // namespace shw::verbs
