// Tensors of one checkpoint that hold the same, where the file format keeps no checksums that would
// say so.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/facts/check_input.h"

namespace shw {

// What each of those holds that begins as another one of its dtype and shape does: equal texts for
// equal elements. Of all others 4 KiB are read and nothing is said. Read once by those who look.
Result<std::map<TensorId, std::string>> contents_of_alike(const CheckInput& input,
                                                          const std::vector<TensorId>& tensors);

}  // namespace shw
