// Quantised weights whose form is not decoded, so that nothing can be said about their values.
#pragma once

#include <string>
#include <vector>

#include "core/facts/facts.h"

namespace shw {

// Texts about the weights that config.json or their names call quantised and that dequantised()
// would leave as they are stored. Settings inside items are read from Depth::kHeaders on.
std::vector<std::string> undecoded_weights_texts(const Facts& facts);

}  // namespace shw
