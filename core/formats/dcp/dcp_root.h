// What the pickle of a .metadata is, before anything of it is read.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/formats/common/pickle.h"

namespace shw {

// Its tensors by name, a dict. kUnsupported where it is no Metadata of torch's: what it is instead.
Result<NodeId> entries_of_metadata(const PickleTree& tree, const std::string& file);

}  // namespace shw
