#include "core/facts/reference/patch_sizes.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shw {
namespace {

using Words = std::string_view;

constexpr std::int64_t kMaxPatches = 4096;  // along a side

// The only config part with a patch_size; null if several parts have one, because names do not tell
// which tensor belongs to which part.
const ConfigPart* config_part_with_patch_size(const ModelConfig& config) {
  const ConfigPart* found = nullptr;
  for (const ConfigPart& part : config.parts) {
    if (!part.sizes.contains("patch_size")) continue;
    if (found != nullptr) return nullptr;
    found = &part;
  }
  const bool is_of_images =
      found != nullptr && (found->name.empty() || found->name == "vision_config");
  return is_of_images ? found : nullptr;
}

// The embedding of patches in all 60 classes of transformers 5.24 with an integer patch_size.
bool is_patch_kernel(const Checkpoint& c, TensorId tensor) {
  constexpr auto kEndings = std::to_array<Words>(
      {"embeddings.patch_embedding.weight", "embeddings.patch_embeddings.projection.weight",
       "embeddings.patch_embeddings.weight", "patch_embed.proj.weight",
       "patch_embed.projection.weight"});
  const Words fqn = c.fqn(tensor);
  const std::size_t rank = c.shape(tensor).size();
  return (rank == 4 || rank == 5) && std::any_of(kEndings.begin(), kEndings.end(),
                                                 [&](Words one) { return fqn.ends_with(one); });
}

std::string key_of(const ConfigPart& part, Words key) {
  return part.name.empty() ? std::string(key) : part.name + "." + std::string(key);
}

// The axis that counts patches in "embeddings.position_embedding.weight" [50, 768] and
// "embeddings.position_embeddings" [1, 197, 768].
std::optional<std::size_t> axis_of_positions(const Checkpoint& c, TensorId tensor, Words stem) {
  const Words fqn = c.fqn(tensor);
  if (!fqn.starts_with(stem)) return std::nullopt;
  const Words last = fqn.substr(stem.size());
  const ExtentsView shape = c.shape(tensor);
  if (last == "position_embedding.weight" && shape.size() == 2) return 0;
  const bool is_parameter = last == "position_embeddings" || last == "position_embedding";
  return is_parameter && shape.size() == 3 && shape[0] == 1 ? std::optional<std::size_t>(1)
                                                            : std::nullopt;
}

// True if `beside_patches` is a usual number of extra tokens: up to 2 (class and distillation
// token), or a "..._tokens" value of the config ("n_cls_tokens": 8).
bool is_number_of_tokens(const ConfigPart& part, std::int64_t beside_patches) {
  constexpr std::int64_t kMaxTokens = 2;
  if (beside_patches >= 0 && beside_patches <= kMaxTokens) return true;
  return std::any_of(part.sizes.begin(), part.sizes.end(), [&](const auto& size) {
    return size.first.ends_with("_tokens") && size.second == beside_patches;
  });
}

// Whether the positions are those of "image_size" or of "pretrain_image_size".
bool are_positions_of_images(const ConfigPart& part, std::int64_t patch, std::int64_t positions) {
  return std::any_of(part.sizes.begin(), part.sizes.end(), [&](const auto& size) {
    const std::int64_t side = size.second / patch;
    return size.first.ends_with("image_size") && side >= 1 && side <= kMaxPatches &&
           is_number_of_tokens(part, positions - side * side);
  });
}

std::optional<SizeContradiction> position_size_contradiction(const Checkpoint& c,
                                                             const ConfigPart& part, Words kernel,
                                                             std::int64_t patch) {
  const auto image = part.sizes.find("image_size");
  const std::size_t end = kernel.rfind("embeddings.patch_embedding");
  if (image == part.sizes.end() || patch <= 0 || end == Words::npos) return std::nullopt;
  const std::int64_t side = image->second / patch;
  if (side < 1 || side > kMaxPatches) return std::nullopt;
  const Words stem = kernel.substr(0, end + Words("embeddings.").size());
  for (TensorId tensor : c.tensors()) {
    const auto axis = axis_of_positions(c, tensor, stem);
    if (!axis) continue;
    if (are_positions_of_images(part, patch, c.shape(tensor)[*axis])) return std::nullopt;
    SizeContradiction found;
    found.words = fmt::format("({} {} / {} {}) squared = {}", key_of(part, "image_size"),
                              image->second, key_of(part, "patch_size"), patch, side * side);
    found.keys = {key_of(part, "image_size"), key_of(part, "patch_size")};
    found.said = side * side;
    found.tensors = {{tensor, *axis}};
    return found;
  }
  return std::nullopt;
}

}  // namespace

std::vector<SizeContradiction> patch_contradictions(const Checkpoint& c,
                                                    const ModelConfig& config) {
  const ConfigPart* part = config_part_with_patch_size(config);
  if (part == nullptr || config.has_own_code) return {};
  const std::int64_t patch = part->sizes.find("patch_size")->second;
  std::vector<SizeContradiction> out;
  SizeContradiction kernels;
  std::optional<TensorId> fitting;
  for (TensorId tensor : c.tensors()) {
    if (!is_patch_kernel(c, tensor)) continue;
    const ExtentsView shape = c.shape(tensor);
    const std::size_t last = shape.size() - 1;
    // Behind a convolutional backbone the kernel is 1 x 1 (DPT's hybrid form).
    if (shape[last] != shape[last - 1] || shape[last] == 1) return {};
    if (shape[last] == patch) {
      fitting = tensor;
    } else {
      kernels.tensors.push_back({tensor, last});
    }
  }
  if (!kernels.tensors.empty()) {
    if (fitting) return {};  // a second tower with patches of its own
    kernels.words = fmt::format("{} {}", key_of(*part, "patch_size"), patch);
    kernels.keys = {key_of(*part, "patch_size")};
    kernels.said = patch;
    out.push_back(std::move(kernels));
  } else if (fitting) {
    if (auto positions = position_size_contradiction(c, *part, c.fqn(*fitting), patch))
      out.push_back(std::move(*positions));
  }
  return out;
}

}  // namespace shw
