// `convert` through a map: writes a checkpoint with the names and layout of another program.
#pragma once

#include "core/verbs/convert_plan.h"
#include "core/verbs/mapped_view.h"

namespace shw::verbs {

// True if --to names a program ("hf", "torch_dist", "titan", "fsdp_dtensor") or --map is given.
bool needs_map(const VerbOptions& said, const MapOptions& mapping);
// Refuses options that a conversion through a map does not support, so that none is ignored
// silently.
Status check_options_of_map(const VerbOptions& said);
// kUsage names a missing map or size.
Result<ConvertPlan> plan_mapped(const Opened& opened, const VerbOptions& said,
                                const MapOptions& mapping);
// Copies config.json, the tokenizer and similar files from --config into a result that Hugging
// Face's libraries load. Returns the names of the copied files.
Result<std::vector<std::string>> copy_model_files(const MapOptions& mapping,
                                                  const std::string& output);

// The format that `convert --to WORLD` writes: "megatron-dist" for "torch_dist", "torch" for
// "optimizer".
std::string format_of_naming_scheme(const std::string& world);

}  // namespace shw::verbs
