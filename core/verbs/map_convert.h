// convert through a map: the tensors of one program's checkpoint under the names, and in the
// layout, of another program.
#pragma once

#include "core/verbs/convert_plan.h"
#include "core/verbs/mapped_view.h"

namespace shw::verbs {

// --to names a program ("hf", "torch_dist", "titan", "fsdp_dtensor"), or --map is given.
bool asks_for_map(const VerbOptions& said, const MapOptions& mapping);
// kUsage says what has to be told beside: a map, a size that nothing says.
Result<ConvertPlan> plan_mapped(const Opened& opened, const VerbOptions& said,
                                const MapOptions& mapping);
// config.json, the tokenizer and their like, of the folder of --config: copied into a result that
// Hugging Face's libraries load. The names of those that were copied.
Result<std::vector<std::string>> copy_model_files(const MapOptions& mapping,
                                                  const std::string& output);

// The name of the format that `convert --to TARGET` writes: "megatron-dist" of "torch_dist".
std::string format_of_world(const std::string& world);

}  // namespace shw::verbs
