// What a parameter says of its optimizer states, where no spec does: a state is as large as it.
#pragma once

#include "core/facts/layout/derived_layout.h"

namespace shw {

// States in several tiles that are short of a whole parameter (states_spec.h): told, and what would
// decide where the tiles belong.
void derive_by_parameters(const CheckInput& input, DerivedLayouts& out);

}  // namespace shw
