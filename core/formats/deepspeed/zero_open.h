// Opens a DeepSpeed step of any ZeRO stage, or a single model states file.
#pragma once

#include "core/formats/format_row.h"

namespace shw {

OpenedCheckpoint open_zero(std::shared_ptr<const Directory> directory, Progress* progress);

}  // namespace shw
