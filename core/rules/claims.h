// The rules about who claims which bytes: storage records, and the index of safetensors files.
#pragma once

#include "core/rules/check.h"

namespace shw {

extern const Rule kSharedStorage, kIndexMisplaced;

}  // namespace shw
