// Rules about names and companion tensors.
#pragma once

#include "core/rules/rule.h"

namespace shw {

extern const Rule kRenamedTensors, kWrappedNames, kAdapterContradicts, kEmptyTensors, kSideFile,
    kUnreadableJson, kZeroWeights, kConstantWeights, kQuantisedPairs;

}  // namespace shw
