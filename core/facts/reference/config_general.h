// Checks for architectures without constraints of their own (config_constraints.h), by the names
// that nearly all decoders share.
#pragma once

#include <vector>

#include "core/base/progress.h"
#include "core/facts/reference/config_constraints.h"
#include "core/facts/reference/size_contradiction.h"
#include "core/model/checkpoint.h"

namespace shw {

// True for tensors outside of the text model ("vision_tower.", "audio_tower.") and for additional
// prediction layers ("mtp.").
bool is_outside_text_model(std::string_view fqn);

// True if a tensor is there, or the parts of a quantised one: "lm_head.qweight" or
// "lm_head.weight.qdata" for "lm_head.weight".
bool has_tensor_or_parts(const Checkpoint& checkpoint, std::string_view fqn);

// The config of the text model: config.json itself, or the part nested in it.
const ConfigPart& text_part_of(const ModelConfig& config);

// The text model, if its class is one of transformers and all layers share a prefix.
std::vector<ModelPart> text_model_without_table(const Checkpoint& checkpoint,
                                                const ModelConfig& config, Progress* progress);
// In unknown architectures drops head counts unless queries match: heads are gated, or of another
// kind of layer.
void drop_unusual_heads(std::vector<SizeContradiction>& sizes);
// Adds the tower of a vision_config that counts its blocks as "depth", if there is one.
void add_vision_tower(const ModelConfig& config, std::vector<ModelPart>& parts);

}  // namespace shw
