// What is said of modules that were pickled whole.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/common/pickle.h"
#include "core/model/finding.h"

namespace shw {

// `modules`: each with how many tensors it has.
std::vector<Finding> module_findings(const PickleTree& tree,
                                     const std::map<NodeId, std::size_t>& modules,
                                     const std::string& path);

// Of tensors whose class is a program's own: they are read as the tensors that they wrap.
std::optional<Finding> subclass_finding(const PickleTree& tree,
                                        const std::map<NodeId, std::size_t>& subclasses,
                                        const std::string& path);

}  // namespace shw
