#pragma once

#include "core/formats/format_writer.h"

namespace shw {

extern const FormatWriter kTorchFileWriter;

}  // namespace shw
