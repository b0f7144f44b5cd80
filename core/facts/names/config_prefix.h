// What stands before the names that config.json's architecture has.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"

namespace shw {

// Layers stand behind `found`, where the architecture has them behind `expected`.
struct ConfigPrefix {
  std::string found;                                    // "model.model.", "policy.model."
  std::string expected;                                 // "model."
  std::string model_type;                               // "llama"
  std::size_t layers = 0;                               // tensors of layers that stand so
  std::vector<std::pair<TensorId, std::string>> names;  // with the names that they should have
};

// Nothing where no config.json of a known architecture lies beside the weights, where any layer
// stands where it should, or where layers stand behind several prefixes.
std::optional<ConfigPrefix> wrong_config_prefix(const Checkpoint& checkpoint,
                                                const Progress* progress);

}  // namespace shw
