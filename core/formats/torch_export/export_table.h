#pragma once

#include "core/formats/format_row.h"

namespace shw {

extern const FormatRow kTorchExportRow;

}  // namespace shw
