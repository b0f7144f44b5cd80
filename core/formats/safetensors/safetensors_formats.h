// Formats of plain safetensors files, and of sharded ones by torch's HuggingFaceStorageWriter.
#pragma once

#include "core/formats/safetensors/safetensors_names.h"
#include "core/model/format.h"

namespace shw {

extern const Format kSafetensorsFormat, kHfShardedFormat;

}  // namespace shw
