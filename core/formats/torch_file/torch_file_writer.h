#pragma once

#include "core/formats/format_writer.h"

namespace shw {

extern const FormatWriter kTorchFileWriter;

// Attributes of the state dict and of its tensors, and keys that are no text: only this writer
// keeps them.
std::vector<std::string> said_in_forms(const Checkpoint& checkpoint);

}  // namespace shw
