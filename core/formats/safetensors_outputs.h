// Checks what can be written as safetensors, alone or as a part of another format.
#pragma once

#include <string_view>

#include "core/formats/format_writer.h"

namespace shw {

// kUnsupported names everything that safetensors cannot store: dtypes without a name there,
// non-tensor entries, and in a plain checkpoint (not `sharded`) tensors in several chunks. `title`:
// of the format that is written.
Status check_safetensors_can_store(const Outputs& outputs, bool sharded, std::string_view title);

}  // namespace shw
