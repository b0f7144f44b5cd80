// The rows of the rules that look at names and at what stands beside each other by name.
#pragma once

#include "core/rules/rule.h"

namespace shw {

extern const Rule kRenamedTensors, kWrappedNames, kAdapterContradicts, kEmptyTensors, kZeroWeights,
    kQuantisedPairs;

}  // namespace shw
