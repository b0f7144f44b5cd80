// The two forms of a DeepSpeed step: ZeRO's partitions, and the universal one.
#pragma once

#include "core/model/format.h"

namespace shw {

extern const Format kZeroFormat;
extern const Format kUniversalFormat;

}  // namespace shw
