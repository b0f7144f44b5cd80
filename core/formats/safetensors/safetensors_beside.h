// Several models in one folder: an adapter beside its model, one model in two forms, or the steps
// of a training.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/io/source.h"
#include "core/model/finding.h"

namespace shw {

// Removes adapters from `paths` and returns them, if there is also a model.
std::vector<std::string> take_adapters(std::vector<std::string>& paths);
Finding beside_model(const std::vector<std::string>& adapters);

// An error if files of several programs are each a whole model.
std::optional<Error> find_other_models(const Directory& directory,
                                       const std::vector<std::string>& paths);

// Removes other forms of a model that lies here too, which its loader takes only when asked:
// "model.fp16.safetensors" beside model.safetensors, and of a folder of transformers
// consolidated.safetensors.
std::vector<std::string> take_variants(std::vector<std::string>& paths, const Directory& directory);
Finding variants_beside(const std::vector<std::string>& variants, const std::string& opened);

// Removes steps of mlx-lm's training ("0000100_adapters.safetensors") beside the final adapters;
// where those are not there, all steps but the newest.
std::vector<std::string> take_steps(std::vector<std::string>& paths);
Finding steps_beside(const std::vector<std::string>& steps, const std::string& opened);

}  // namespace shw
