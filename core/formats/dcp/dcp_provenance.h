// Determines which software wrote a .metadata.
#pragma once

#include <cstdint>

#include "core/formats/pickle/pickle_tree.h"
#include "core/model/checkpoint.h"

namespace shw {

// `arity`, `old_properties`: number of properties of its tensors, and whether they are pickled as
// by torch 2.2 and older. `file_size` limits the size of copied values.
Provenance provenance_of(const PickleTree& tree, std::uint64_t file_size, int arity,
                         bool old_properties);

}  // namespace shw
