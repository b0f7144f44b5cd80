#pragma once

#include "core/formats/format_writer.h"

namespace shw {

extern const FormatWriter kTorchFileWriter;

// Names of what only this writer keeps: attributes of the state dict and its tensors, and non-text
// keys.
std::vector<std::string> torch_only_names(const Checkpoint& checkpoint);

}  // namespace shw
