// Finds layers of an adapter without a module that the adapter has in the other layers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shw {

// Names of missing modules ("model.layers.1.self_attn.q_proj"), each once. A layer counts if it
// is between two others and at most one in eight layers, or a single one, lacks the module. The
// last layer counts only if it has another of query, key and value, because models with mixed
// layers lack more.
std::vector<std::string> modules_missing_in_layers(const std::vector<std::string_view>& modules);

}  // namespace shw
