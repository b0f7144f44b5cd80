// The two formats of a DeepSpeed step: ZeRO partitions and universal checkpoints.
#pragma once

#include "core/model/format.h"

namespace shw {

extern const Format kZeroFormat;
extern const Format kUniversalFormat;

}  // namespace shw
