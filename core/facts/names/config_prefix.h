// Finds wrong prefixes of tensor names, compared with the architecture in config.json.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"

namespace shw {

// All layers have prefix `found` where the architecture has `expected`.
struct ConfigPrefix {
  std::string found;                                    // "model.model.", "policy.model."
  std::string expected;                                 // "model."
  std::string model_type;                               // "llama"
  std::size_t layers = 0;                               // tensors of layers with the wrong prefix
  std::vector<std::pair<TensorId, std::string>> names;  // with their correct names
};

// nullopt without config.json of a known architecture, if any layer has the right prefix, or if
// layers have several prefixes.
std::optional<ConfigPrefix> wrong_config_prefix(const Checkpoint& checkpoint,
                                                const Progress* progress);

}  // namespace shw
