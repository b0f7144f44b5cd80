// Findings about pickled modules and tensor subclasses.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/pickle/pickle.h"
#include "core/model/finding.h"

namespace shw {

// `modules`: number of tensors by module.
std::vector<Finding> module_findings(const PickleTree& tree,
                                     const std::map<NodeId, std::size_t>& modules,
                                     const std::string& path);

// Finding about tensors of a program's own class, which are read as the tensors that they wrap.
std::optional<Finding> subclass_finding(const PickleTree& tree,
                                        const std::map<NodeId, std::size_t>& subclasses,
                                        const std::string& path);

}  // namespace shw
