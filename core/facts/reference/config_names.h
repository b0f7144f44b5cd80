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
  // Names that the class does not have. If there are any, `incomplete` has tensors of their layers
  // alone, and `absent` none.
  std::vector<std::string> others;
  // No name with a number is one of the class: layers of another model, or all renamed. Then the
  // other lists are not complete.
  bool has_no_layer = false;
  // Every name is written as save_pretrained writes it, with no prefix added or left out.
  bool are_as_saved = false;
};

// nullopt unless one known class is named, and every name that is there is one of its own: a name
// that it does not have may be a renamed absent one. Of classes for which transformers renames
// nothing a minority may be others. `checkpoint` must be complete.
// Names may be those that the class saves or those of its state_dict().
std::optional<ConfigNames> compare_names(const Checkpoint& checkpoint, const ModelConfig& config,
                                         Progress* progress);

// "model." where every name is one that the class saves with this in front, and the class has no
// such name in memory either. Of classes that rename while they save: transformers searches for
// parts of these names, and finds some.
std::optional<std::string> added_prefix(const Checkpoint& checkpoint, const ModelConfig& config,
                                        const Progress* progress);

}  // namespace shw
