#include "core/formats/library_names.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/json.h"
#include "core/formats/common/python_json.h"
#include "core/formats/common/top_file.h"
#include "core/io/read_whole.h"

namespace shw {
namespace {

constexpr std::uint64_t kMostConfig = std::uint64_t{4} << 20;
constexpr std::string_view kDiffusers = "diffusion_pytorch_model";
constexpr std::string_view kPeft = "adapter_model";

LibraryNames own_names(std::string_view stem) {
  return {std::string(stem), std::string(stem) + ".bin"};
}

// "adapter_model" of "adapter_model.bin" and of "adapter_model-00001-of-00002.safetensors".
bool has_stem(std::string_view name, std::string_view stem) {
  if (!name.starts_with(stem)) return false;
  name.remove_prefix(stem.size());
  return name.starts_with('.') || name.starts_with('-');
}

// The stem that all weights at hand have, of those that one library alone looks for.
std::string_view stem_at_hand(const Checkpoint& source, const std::string& folder) {
  constexpr auto kStems = std::to_array<std::string_view>({kDiffusers, kPeft});
  std::string_view found;
  for (const FileRow& file : source.files()) {
    if (!file.referenced || !file.path.starts_with(folder)) continue;
    const std::string_view name = std::string_view(file.path).substr(folder.size());
    if (!is_at_top(name)) continue;
    const auto stem = std::find_if(kStems.begin(), kStems.end(),
                                   [&](std::string_view one) { return has_stem(name, one); });
    if (stem == kStems.end() || (!found.empty() && found != *stem)) return {};
    found = *stem;
  }
  return found;
}

nlohmann::json config_at(const Directory& directory, const std::string& path) {
  const Entry entry = directory.stat(path);
  if (entry.kind != EntryKind::kFile || entry.size > kMostConfig) return {};
  auto source = directory.open(path);
  auto text = source ? read_whole_text(**source, kMostConfig) : Result<std::string>("");
  if (!text) return {};
  auto parsed = parse_json<nlohmann::json>(replace_non_json_floats(*text));
  return parsed.problem.empty() ? std::move(parsed.tree) : nlohmann::json();
}

bool says_text(const nlohmann::json& config, const char* key) {
  auto found = config.find(key);
  return found != config.end() && found->is_string();
}

}  // namespace

LibraryNames library_names(const Checkpoint* source, const std::string& folder) {
  if (source == nullptr || source->directory() == nullptr) return {};
  if (const std::string_view stem = stem_at_hand(*source, folder); !stem.empty())
    return own_names(stem);
  const Directory& directory = *source->directory();
  const nlohmann::json config = config_at(directory, folder + "config.json");
  const bool is_of_model =
      config.is_object() && (says_text(config, "model_type") || config.contains("architectures"));
  if (is_of_model) return {"model", "pytorch_model.bin"};
  if (config.is_object() && says_text(config, "_class_name")) return own_names(kDiffusers);
  const Entry adapter = directory.stat(folder + "adapter_config.json");
  if (adapter.kind == EntryKind::kFile) return own_names(kPeft);
  return {};
}

}  // namespace shw
