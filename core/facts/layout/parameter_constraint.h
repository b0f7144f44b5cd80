// Derives the shape of optimizer states from their parameter, if no spec gives it.
#pragma once

#include "core/facts/layout/derived_layout.h"

namespace shw {

// Reports states in several chunks that are smaller than their parameter (states_spec.h), and what
// would decide where the chunks belong.
void derive_by_parameters(const CheckInput& input, DerivedLayouts& out);

}  // namespace shw
