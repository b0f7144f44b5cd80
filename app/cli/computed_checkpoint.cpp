#include "app/cli/computed_checkpoint.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/verbs/computed_path.h"

namespace shw::cli {
namespace {

std::string combined_path(const Options& options) {
  const std::string& base = options.checkpoint;
  const std::vector<std::string>& inputs = options.inputs;
  if (options.verb == "average")
    return verbs::average_path(base, inputs, options.weights, options.dequantise);
  if (options.verb == "extract")
    return verbs::adapter_path(base, inputs.front(), options.lora_rank);
  if (options.verb == "delta") return verbs::delta_path(base, inputs.front());
  if (options.verb == "apply") return verbs::applied_path(base, inputs.front());
  std::string path = base;
  for (const std::string& adapter : inputs) path = verbs::merged_path(path, adapter);
  return path;
}

}  // namespace

bool combines_inputs(const Options& options) {
  constexpr std::array<std::string_view, 5> kVerbs{"merge", "average", "delta", "apply", "extract"};
  return std::ranges::find(kVerbs, options.verb) != kVerbs.end();
}

Status name_computed_checkpoint(Options& options) {
  if (options.dequantise) options.checkpoint += verbs::kDequantisedPath;
  if (combines_inputs(options)) {
    for (const std::string& path : options.inputs) SHW_CHECK(verbs::check_input_path(path));
    options.checkpoint = combined_path(options);
  }
  if (!options.quantise.empty())
    options.checkpoint = verbs::quantised_path(options.checkpoint, options.quantise);
  return {};
}

}  // namespace shw::cli
