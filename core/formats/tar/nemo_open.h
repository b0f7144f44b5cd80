// A .nemo file of NeMo 1 and 2: a tar archive with the checkpoint in it.
#pragma once

#include "core/formats/format_row.h"

namespace shw {

extern const FormatRow kNemoRow;

}  // namespace shw
