// Compares the names of a Hugging Face folder with those that its class of transformers saves
// (names/architectures.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/facts/reference/model_config.h"
#include "core/model/checkpoint.h"

namespace shw {

struct ConfigNames {
  std::string architecture;  // "LlamaForCausalLM"
  // Absent although other tensors of their layer, or the same tensors of other layers, are there.
  std::vector<std::string> incomplete;
  // Absent as a whole; * for numbers: "visual.blocks.*.attn.qkv.weight".
  std::vector<std::string> absent;
};

// nullopt unless one known class is named, and every name that is there is one of its own: a name
// that it does not have may be a renamed absent one. `checkpoint` must be complete.
std::optional<ConfigNames> compare_names(const Checkpoint& checkpoint, const ModelConfig& config,
                                         Progress* progress);

}  // namespace shw
