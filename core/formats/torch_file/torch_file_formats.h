// One file of torch.save in its zip form, with a state dict in it.
#pragma once

#include "core/model/format.h"

namespace shw {

extern const Format kTorchFileFormat;

}  // namespace shw
