// Opens the weights of a GGUF file, or of all parts of a split one, as one checkpoint.
#pragma once

#include <memory>

#include "core/formats/format_row.h"
#include "core/io/source.h"

namespace shw {

extern const Format kGgufFormat;
OpenedCheckpoint open_gguf(std::shared_ptr<const Directory> directory, Progress* progress);

}  // namespace shw
