// What lies in one folder and is not one model: an adapter beside it, the same model in two forms.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/io/source.h"
#include "core/model/finding.h"

namespace shw {

// Takes adapters out of `paths` where a model lies beside them.
std::vector<std::string> take_adapters(std::vector<std::string>& paths);
Finding beside_model(const std::vector<std::string>& adapters);

// Files of several programs, each of them a whole model; nothing where there is one.
std::optional<Error> find_other_models(const Directory& directory,
                                       const std::vector<std::string>& paths);

}  // namespace shw
