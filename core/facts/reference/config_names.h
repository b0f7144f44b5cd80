// Compares the tensor names of a Hugging Face folder with those that its transformers class saves
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
  // Missing names although other tensors of the layer, or the same tensors of other layers, exist.
  std::vector<std::string> incomplete;
  // Groups that are missing completely; * for numbers: "visual.blocks.*.attn.qkv.weight".
  std::vector<std::string> absent;
  // Names unknown to the class. If there are any, `incomplete` only lists tensors of their layers,
  // and `absent` is empty.
  std::vector<std::string> others;
  // Weights among `others` that occur in every layer although no name of the class is missing
  // there: the layers belong to another class.
  std::vector<std::string> unknown_in_each_layer;
  // True if no numbered name belongs to the class: layers of another model, or all renamed. Then
  // the other lists are incomplete.
  bool has_no_layer = false;
  // True if every name is written as save_pretrained writes it, without an added or missing prefix.
  bool are_spelled_as_saved = false;
};

// nullopt unless the config names one known class, and every existing name belongs to it: an
// unknown name may be a renamed missing one. For classes that transformers loads without renaming,
// a minority of names may be unknown. `checkpoint` must be complete. Names may be those that the
// class saves or those of its state_dict().
std::optional<ConfigNames> compare_names(const Checkpoint& checkpoint, const ModelConfig& config,
                                         Progress* progress);

// "model." if every name is one that the class saves with this added prefix, and the class has no
// such name in memory either. Only for classes that rename when saving: transformers searches for
// parts of these names, and finds some.
std::optional<std::string> added_prefix(const Checkpoint& checkpoint, const ModelConfig& config,
                                        const Progress* progress);

// Names without the part of the class that holds them: "encoder.layers.0..." of
// "vision_tower.encoder.layers.0...".
struct MissingModelPart {
  std::string prefix;        // "vision_tower."
  std::string architecture;  // "LlavaForConditionalGeneration"
  std::vector<TensorId> tensors;
};

// nullopt if the class is not known, or the names lack something else.
std::optional<MissingModelPart> lost_part(const Checkpoint& checkpoint, const ModelConfig& config,
                                          const Progress* progress);

}  // namespace shw
