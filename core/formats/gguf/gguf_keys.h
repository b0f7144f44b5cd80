// Compares the keys in a GGUF header with the tensors: llama.cpp builds the model from the keys,
// then looks up its tensors by name and size.
#pragma once

#include <vector>

#include "core/formats/gguf/gguf_files.h"
#include "core/model/finding.h"

namespace shw {

// Empty unless all parts of the language model were read.
std::vector<Finding> compare_gguf_keys(const GgufFiles& found);

}  // namespace shw
