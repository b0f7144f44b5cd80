// Who wrote a .metadata, as far as it says so.
#pragma once

#include <cstdint>

#include "core/formats/common/pickle_tree.h"
#include "core/model/checkpoint.h"

namespace shw {

// `arity`, `old_properties`: how many properties its tensors have, and whether they are pickled as
// torch 2.2 and older did. `file_size` bounds what is written out of it.
Provenance provenance_of(const PickleTree& tree, std::uint64_t file_size, int arity,
                         bool old_properties);

}  // namespace shw
