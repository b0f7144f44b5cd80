#include "core/formats/library_names.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/json.h"
#include "core/formats/common/python_json.h"
#include "core/formats/common/top_file.h"
#include "core/io/read_whole.h"

namespace shw {
namespace {

constexpr std::uint64_t kMaxConfig = std::uint64_t{4} << 20;
constexpr std::string_view kDiffusers = "diffusion_pytorch_model";
constexpr std::string_view kDiffusersLora = "pytorch_lora_weights";
constexpr std::string_view kPeft = "adapter_model";
constexpr std::string_view kSafetensors = ".safetensors";

// A file stem that only one library looks for.
struct KnownStem {
  std::string_view stem;
  std::string_view torch_ending = ".bin";
  bool has_own_tensor_names = false;  // this library's tensors have their own names
};
constexpr auto kKnownStems = std::to_array<KnownStem>({
    {kDiffusers},
    {kDiffusersLora},
    {kPeft},
    {"adapters"},                       // mlx-lm
    {"consolidated", ".00.pth", true},  // Meta's and Mistral's programs
});

WeightFileNames own_names(std::string_view stem, std::string_view torch_ending = ".bin") {
  return {std::string(stem), std::string(stem) + std::string(torch_ending)};
}

// "adapter_model" of "adapter_model.bin" and of "adapter_model-00001-of-00002.safetensors".
bool has_stem(std::string_view name, std::string_view stem) {
  if (!name.starts_with(stem)) return false;
  name.remove_prefix(stem.size());
  return name.starts_with('.') || name.starts_with('-');
}

// Names of the files that hold the weights of the folder.
std::vector<std::string_view> weight_files(const Checkpoint& source, const std::string& folder) {
  std::vector<std::string_view> names;
  for (const FileRow& file : source.files()) {
    if (!file.referenced || !file.path.starts_with(folder)) continue;
    const std::string_view name = std::string_view(file.path).substr(folder.size());
    if (is_at_top(name)) names.push_back(name);
  }
  return names;
}

// The library's stem that all files have.
std::optional<WeightFileNames> known_stem_of_all(const std::vector<std::string_view>& files,
                                                 bool names_stay) {
  for (const KnownStem& one : kKnownStems) {
    const bool is_of_all = std::all_of(files.begin(), files.end(), [&](std::string_view name) {
      return has_stem(name, one.stem);
    });
    if (!files.empty() && is_of_all && (names_stay || !one.has_own_tensor_names))
      return own_names(one.stem, one.torch_ending);
  }
  return std::nullopt;
}

// True for names like "unet.mid_block.to_q.lora_A.weight", which diffusers' load_lora_weights
// accepts.
bool is_lora_of_pipeline(const Checkpoint& source) {
  constexpr auto kModels = std::to_array<std::string_view>(
      {"unet.", "transformer.", "text_encoder.", "text_encoder_2."});
  for (TensorId tensor : source.tensors()) {
    const std::string_view fqn = source.fqn(tensor);
    const bool is_lora = fqn.find(".lora") != std::string_view::npos &&
                         std::any_of(kModels.begin(), kModels.end(), [&](std::string_view model) {
                           return fqn.starts_with(model);
                         });
    if (!is_lora) return false;
  }
  return source.tensor_count() > 0;
}

// Keeps the name of a single file that no library looks for ("my_lora.safetensors").
std::optional<WeightFileNames> keep_single_file_name(const Checkpoint& source,
                                                     const std::vector<std::string_view>& files) {
  if (!source.format().traits.has_one_piece_per_tensor || files.size() != 1 ||
      !files.front().ends_with(kSafetensors))
    return std::nullopt;
  const std::string_view stem = files.front().substr(0, files.front().size() - kSafetensors.size());
  const bool is_known = std::ranges::any_of(
      kKnownStems, [&](const KnownStem& one) { return has_stem(files.front(), one.stem); });
  const bool is_part = stem.empty() || stem.find("-of-") != std::string_view::npos ||
                       stem.starts_with("shard-") || has_stem(files.front(), "model");
  if (is_known) return std::nullopt;  // stem of a library, but its tensor names were changed
  if (is_part) return std::nullopt;
  return own_names(stem, ".pt");
}

nlohmann::json config_at(const Directory& directory, const std::string& path) {
  const Entry entry = directory.stat(path);
  if (entry.kind != EntryKind::kFile || entry.size > kMaxConfig) return {};
  auto source = directory.open(path);
  auto text = source ? read_whole_text(**source, kMaxConfig) : Result<std::string>("");
  if (!text) return {};
  auto parsed = parse_json<nlohmann::json>(replace_non_json_floats(*text));
  return parsed.problem.empty() ? std::move(parsed.tree) : nlohmann::json();
}

bool has_text_value(const nlohmann::json& config, const char* key) {
  auto found = config.find(key);
  return found != config.end() && found->is_string();
}

}  // namespace

WeightFileNames weight_file_names(const Checkpoint* source, const std::string& folder,
                                  bool names_stay) {
  if (source == nullptr || source->directory() == nullptr) return {};
  const auto files = weight_files(*source, folder);
  if (auto known = known_stem_of_all(files, names_stay)) return *known;
  const Directory& directory = *source->directory();
  const nlohmann::json config = config_at(directory, folder + "config.json");
  const bool is_of_model = config.is_object() && (has_text_value(config, "model_type") ||
                                                  config.contains("architectures"));
  if (is_of_model) return {"model", "pytorch_model.bin"};
  if (config.is_object() && has_text_value(config, "_class_name")) return own_names(kDiffusers);
  const Entry adapter = directory.stat(folder + "adapter_config.json");
  if (adapter.kind == EntryKind::kFile) return own_names(kPeft);
  if (auto own = keep_single_file_name(*source, files); own && folder.empty()) return *own;
  return is_lora_of_pipeline(*source) ? own_names(kDiffusersLora) : WeightFileNames();
}

}  // namespace shw
