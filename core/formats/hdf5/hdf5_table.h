#pragma once

#include "core/formats/format_row.h"

namespace shw {

extern const FormatRow kHdf5Row;

}  // namespace shw
