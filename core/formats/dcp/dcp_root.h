// Recognises the pickle of a .metadata before its contents are read.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/formats/pickle/pickle.h"

namespace shw {

// The dict of tensors by name. kUnsupported, with the found type, if it is not torch's Metadata.
Result<NodeId> entries_of_metadata(const PickleTree& tree, const std::string& file);

}  // namespace shw
