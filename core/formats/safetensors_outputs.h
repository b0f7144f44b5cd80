// What can be written as safetensors, alone or as a part of another format.
#pragma once

#include "core/formats/format_writer.h"

namespace shw {

// kUnsupported names all that no safetensors file can say: dtypes that it has no word for, entries
// that are no tensors; of a plain checkpoint (not `sharded`) also tensors in pieces.
Status check_safetensors_can_say(const Outputs& outputs, bool sharded);

}  // namespace shw
