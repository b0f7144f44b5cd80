#include "core/formats/safetensors/other_models.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "core/base/natural_order.h"
#include "core/base/words.h"
#include "core/formats/common/how_read_finding.h"
#include "core/formats/common/open_advice.h"
#include "core/formats/safetensors/safetensors_names.h"

namespace shw {
namespace {

constexpr std::string_view kConsolidatedStem = "consolidated", kTransformersStem = "model";

// "model" for "model.fp16.safetensors", "model.fp16-00001-of-00002.safetensors" and
// "model-00001-of-00002.fp16.safetensors"; empty if the name has no variant.
std::string_view stem_of_variant(std::string_view path) {
  if (!path.ends_with(kSafetensorsSuffix)) return {};
  const std::string_view rest = path.substr(0, path.size() - kSafetensorsSuffix.size());
  const std::size_t dot = rest.find('.');
  if (dot == std::string_view::npos || dot + 1 == rest.size()) return {};
  const bool is_word = std::all_of(rest.begin() + static_cast<std::ptrdiff_t>(dot) + 1, rest.end(),
                                   [](char c) { return c != '.' && c != ' '; });
  return is_word ? model_stem(std::string(rest.substr(0, dot)) + std::string(kSafetensorsSuffix))
                 : std::string_view{};
}

}  // namespace

std::vector<std::string> exclude_variant_files(std::vector<std::string>& paths,
                                               const Directory& directory) {
  auto has_stem = [&](std::string_view stem) {
    return std::any_of(paths.begin(), paths.end(),
                       [&](const std::string& path) { return model_stem(path) == stem; });
  };
  const bool has_config = directory.stat("config.json").kind == EntryKind::kFile;
  const bool has_both = has_config && has_stem(kTransformersStem) && has_stem(kConsolidatedStem);
  std::vector<std::string> aside, kept;
  for (std::string& path : paths) {
    const std::string_view stem = stem_of_variant(path);
    const bool is_aside =
        (!stem.empty() && has_stem(stem)) || (has_both && model_stem(path) == kConsolidatedStem);
    (is_aside ? aside : kept).push_back(path);
  }
  paths = std::move(kept);
  return aside;
}

Finding variants_finding(const std::vector<std::string>& variants, const std::string& opened) {
  Finding finding = how_read_finding(
      variants.front(),
      fmt::format("Opened {}, which loaders use by default. Not opened: {}, another variant of the "
                  "model. A path to {} opens {}.",
                  opened, short_list_text(variants), variants.size() == 1 ? "it" : "one of them",
                  variants.size() == 1 ? "it" : "that one"));
  finding.subjects = variants;
  finding.evidence = {{"opened", opened},
                      {"left_aside", static_cast<std::int64_t>(variants.size())}};
  return finding;
}

// Removes adapters from the paths, since PEFT saves them next to the model. Without a model the
// adapter is the checkpoint.
std::vector<std::string> exclude_adapter_files(std::vector<std::string>& paths) {
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

Finding adapters_finding(const std::vector<std::string>& adapters) {
  Finding finding = how_read_finding(
      adapters.front(),
      fmt::format(
          "{} {} next to the model of this folder and {} not opened: to open {}, give the path.",
          short_list_text(adapters), adapters.size() == 1 ? "is" : "are",
          adapters.size() == 1 ? "was" : "were", adapters.size() == 1 ? "it" : "each"));
  finding.evidence = {{"adapters", adapters}};
  return finding;
}

std::vector<std::string> exclude_older_step_files(std::vector<std::string>& paths) {
  constexpr auto kFinal =
      std::to_array<std::string_view>({"adapters.safetensors", "final_adapters.safetensors"});
  constexpr std::string_view kStepEnding = "_adapters.safetensors";
  auto is_step = [&](const std::string& path) {
    if (!path.ends_with(kStepEnding) || path.size() == kStepEnding.size()) return false;
    const std::string_view number =
        std::string_view(path).substr(0, path.size() - kStepEnding.size());
    return number.find_first_not_of("0123456789") == std::string_view::npos;
  };
  auto is_final = [&](const std::string& path) {
    return std::ranges::find(kFinal, path) != kFinal.end();
  };
  std::vector<std::string> steps;
  std::ranges::copy_if(paths, std::back_inserter(steps), is_step);
  std::ranges::sort(steps, natural_less);
  if (std::ranges::none_of(paths, is_final) && !steps.empty()) steps.pop_back();
  std::erase_if(paths, [&](const std::string& path) {
    return std::ranges::find(steps, path) != steps.end();
  });
  return steps;
}

Finding older_steps_finding(const std::vector<std::string>& steps, const std::string& opened) {
  Finding finding = how_read_finding(
      steps.front(),
      fmt::format("Opened {}, the newest save of this training run. Not opened: {}, {} of it. A "
                  "path to {} opens {}.",
                  opened, short_list_text(steps),
                  steps.size() == 1 ? "an earlier step" : "earlier steps",
                  steps.size() == 1 ? "it" : "one of them", steps.size() == 1 ? "it" : "that one"));
  finding.subjects = steps;
  finding.evidence = {{"opened", opened}, {"left_aside", static_cast<std::int64_t>(steps.size())}};
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
    return Error{ErrorKind::kUnsupported,
                 fmt::format("holds several checkpoints: different programs load {} or {} as the "
                             "whole model, and no index decides",
                             *first, path),
                 {directory.name()},
                 fmt::format("Give the path of one of them: {} or {}. {}", *first, path,
                             advice_to_open(directory, *first))};
  }
  return std::nullopt;
}

}  // namespace shw
