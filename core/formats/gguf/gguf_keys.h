// The keys of a GGUF file's header against the tensors in it: llama.cpp builds the model by the
// keys and then asks for its tensors by name and size.
#pragma once

#include <vector>

#include "core/formats/gguf/gguf_files.h"
#include "core/model/finding.h"

namespace shw {

// Nothing unless all parts of one language model were read.
std::vector<Finding> compare_gguf_keys(const GgufFiles& found);

}  // namespace shw
