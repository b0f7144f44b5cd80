#include "core/formats/safetensors/safetensors_beside.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/safetensors/safetensors_names.h"

namespace shw {

// Removes adapters from the paths, since PEFT saves them beside the model. An adapter alone is the
// checkpoint.
std::vector<std::string> take_adapters(std::vector<std::string>& paths) {
  auto is_adapter = [](const std::string& path) { return model_stem(path) == kAdapterStem; };
  const bool has_model = std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
    return !model_stem(path).empty() && !is_adapter(path);
  });
  std::vector<std::string> adapters;
  if (!has_model) return adapters;
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(adapters), is_adapter);
  std::erase_if(paths, is_adapter);
  return adapters;
}

Finding beside_model(const std::vector<std::string>& adapters) {
  Finding finding = bad_record(
      adapters.front(),
      fmt::format(
          "{} {} beside the model of this folder and {} not looked at: open {} by its name.",
          some_of(adapters), adapters.size() == 1 ? "lies" : "lie",
          adapters.size() == 1 ? "was" : "were", adapters.size() == 1 ? "it" : "each"));
  finding.severity = Severity::kInfo;
  finding.evidence = {{"adapters", adapters}};
  return finding;
}

// Mistral publishes models twice, as model.safetensors and consolidated.safetensors with other
// tensor names. They share no names but are two models.
std::optional<Error> find_other_models(const Directory& directory,
                                       const std::vector<std::string>& paths) {
  const std::string* first = nullptr;
  for (const std::string& path : paths) {
    const std::string_view stem = model_stem(path);
    if (stem.empty()) continue;
    if (first == nullptr) first = &path;
    if (model_stem(*first) == stem) continue;
    return Error{
        ErrorKind::kUnsupported,
        fmt::format("holds several checkpoints side by side: {} and {} are what different programs "
                    "look for, each as a whole model, and no index says which counts",
                    *first, path),
        {directory.name()},
        fmt::format("Open one of them by its name: {} or {}.", *first, path)};
  }
  return std::nullopt;
}

}  // namespace shw
