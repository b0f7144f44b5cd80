// What is said of modules that were pickled whole.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "core/formats/common/pickle.h"
#include "core/model/finding.h"

namespace shw {

// `modules`: each with how many tensors it has.
std::vector<Finding> module_findings(const PickleTree& tree,
                                     const std::map<NodeId, std::size_t>& modules,
                                     const std::string& path);

}  // namespace shw
