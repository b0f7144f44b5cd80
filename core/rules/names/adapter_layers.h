// Layers of an adapter that lack a module which the others have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shw {

// Names of absent modules ("model.layers.1.self_attn.q_proj") among `modules`, each once. A layer
// between two others counts if fewer than one in eight lack the module, or one alone; the last
// layer only where it has another of query, key and value: models of mixed layers leave out more.
std::vector<std::string> absent_in_layers(const std::vector<std::string_view>& modules);

}  // namespace shw
