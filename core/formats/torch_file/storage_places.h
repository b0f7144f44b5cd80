// Where the storages of a file of torch.save say that they lay: "cpu", "cuda:0". torch.load without
// map_location puts each back there, and stops at a word that it does not know.
#pragma once

#include <string>
#include <vector>

#include "core/formats/common/pickle.h"
#include "core/model/finding.h"

namespace shw {

// One finding for the words that no torch knows by itself, one for those of known backends that are
// no part of torch. Bytes are whole in both cases, and read here.
std::vector<Finding> storage_place_findings(const PickleTree& tree, const std::string& path);

}  // namespace shw
