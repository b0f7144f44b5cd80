// Steps as a person writes them down: {"step": "cast", "tensors": ["*.weight"], "dtype":
// "bfloat16"}. For .cpp files only.
#pragma once

#include <nlohmann/json.hpp>

#include "core/transform/json.h"
#include "core/transform/steps.h"

namespace shw {

// Names in it are not written as text yet (write_names_as_text).
nlohmann::ordered_json json_of_step(const Step& step);
// Complains of a key that the step does not have: no key is passed over.
Step read_step(EditedJson& in, const nlohmann::ordered_json& json);

}  // namespace shw
