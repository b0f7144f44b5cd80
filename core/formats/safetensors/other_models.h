// Several models in one folder: an adapter and its model, one model in two forms, or the steps of a
// training.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/io/source.h"
#include "core/model/finding.h"

namespace shw {

// Removes adapters from `paths` and returns them, if there is also a model.
std::vector<std::string> exclude_adapter_files(std::vector<std::string>& paths);
Finding adapters_finding(const std::vector<std::string>& adapters);

// An error if files of several programs each contain a whole model.
std::optional<Error> find_other_models(const Directory& directory,
                                       const std::vector<std::string>& paths);

// Removes other forms of an existing model, which loaders read only on request:
// "model.fp16.safetensors" next to model.safetensors, and in a folder of transformers
// consolidated.safetensors.
std::vector<std::string> exclude_variant_files(std::vector<std::string>& paths,
                                               const Directory& directory);
Finding variants_finding(const std::vector<std::string>& variants, const std::string& opened);

// Removes mlx-lm's training steps ("0000100_adapters.safetensors") if the final adapters exist;
// otherwise all steps except the newest.
std::vector<std::string> exclude_older_step_files(std::vector<std::string>& paths);
Finding older_steps_finding(const std::vector<std::string>& steps, const std::string& opened);

}  // namespace shw
