// Opens a .nemo file of NeMo 1 or 2: a tar archive that contains the checkpoint.
#pragma once

#include "core/formats/format_row.h"

namespace shw {

extern const FormatRow kNemoRow;

}  // namespace shw
