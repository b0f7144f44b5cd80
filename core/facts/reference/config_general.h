// What config.json says of names and shapes in any architecture: a model whose own laws are not
// known (config_laws.h) is judged by the names that nearly all decoders share.
#pragma once

#include <vector>

#include "core/base/progress.h"
#include "core/facts/reference/config_laws.h"
#include "core/model/checkpoint.h"

namespace shw {

// "vision_tower.", "audio_tower.": a tensor of a part that is no text model. Also of layers that
// predict further tokens ("mtp.").
bool is_beside_text(std::string_view fqn);

// The config of the text model: config.json itself, or the one that is nested in it.
const ConfigPart& text_part_of(const ModelConfig& config);

// The text model, where its class is one of transformers and its layers stand under one name.
std::vector<ModelPart> general_parts(const Checkpoint& checkpoint, const ModelConfig& config,
                                     Progress* progress);

}  // namespace shw
