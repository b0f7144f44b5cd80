// The format of a single torch.save file (zip form) with a state dict.
#pragma once

#include "core/model/format.h"

namespace shw {

extern const Format kTorchFileFormat;

}  // namespace shw
