#pragma once

#include "core/formats/dcp/dcp_write.h"
#include "core/formats/format_writer.h"

namespace shw {

extern const FormatWriter kDcpWriter;

// Contents of the new `.metadata`. kUnsupported if a kept tile has no usable storage record.
Result<DcpMetadata> dcp_metadata_of(const Outputs& outputs, const LaidOut& laid_out);

}  // namespace shw
