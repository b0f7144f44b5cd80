#pragma once

#include "core/formats/format_writer.h"

namespace shw {

extern const FormatWriter kTorchFileWriter;

// Attributes of the state dict and of its tensors, which only this writer keeps.
std::vector<std::string> attributes_beside(const Checkpoint& checkpoint);

}  // namespace shw
