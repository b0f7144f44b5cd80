#pragma once

#include "core/formats/format_row.h"

namespace shw {

extern const FormatRow kUniversalRow;
extern const FormatRow kZeroRow;

}  // namespace shw
