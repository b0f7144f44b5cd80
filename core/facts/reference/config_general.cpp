#include "core/facts/reference/config_general.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/base/cancellable_range.h"
#include "core/base/words.h"
#include "core/facts/names/name_families.h"

namespace shw {
namespace {

using Words = std::string_view;

constexpr Words kLayerCount = "num_hidden_layers|n_layer|n_layers|num_layers";
constexpr Words kPredicting = "num_nextn_predict_layers|num_mtp_layers|mtp_num_hidden_layers";
constexpr Words kInnerExperts =
    "mlp.experts.|block_sparse_moe.experts.|mixer.experts.|feed_forward.experts.|moe.experts.";
constexpr Words kExpertCount =
    "num_experts|num_local_experts|n_routed_experts|moe_num_experts|num_routed_experts";
constexpr StackConstraint kGeneralStacks[] = {
    {"layers.", kLayerCount, kPredicting, kInnerExperts, kExpertCount},
    {"h.", kLayerCount, kPredicting, kInnerExperts, kExpertCount},
    {"blocks.", kLayerCount, kPredicting, kInnerExperts, kExpertCount},
};

constexpr Words kAnyHidden = "hidden_size|n_embd|d_model", kAnyFfn = "intermediate_size";
constexpr Words kAnyQueries = "num_attention_heads*head_dim",
                kAnyKeys = "num_key_value_heads*head_dim";
constexpr SizeConstraint kGeneralSizes[] = {
    {"embed_tokens.weight", {"vocab_size", kAnyHidden}},
    {"embeddings.weight", {"vocab_size", kAnyHidden}},
    {"word_embeddings.weight", {"vocab_size", kAnyHidden}},
    {"norm.weight", {kAnyHidden}},
    {"norm_f.weight", {kAnyHidden}},
    {"final_layernorm.weight", {kAnyHidden}},
    {"layers.*.input_layernorm.weight", {kAnyHidden}},
    {"layers.*.post_attention_layernorm.weight", {kAnyHidden}},
    {"layers.*.self_attn.q_proj.weight", {kAnyQueries, ""}},
    {"layers.*.self_attn.k_proj.weight", {kAnyKeys, ""}},
    {"layers.*.self_attn.v_proj.weight", {kAnyKeys, ""}},
    {"layers.*.self_attn.o_proj.weight", {kAnyHidden}},
    {"layers.*.mlp.gate_proj.weight", {kAnyFfn, kAnyHidden}},
    {"layers.*.mlp.up_proj.weight", {kAnyFfn, kAnyHidden}},
    {"layers.*.mlp.down_proj.weight", {kAnyHidden, kAnyFfn}},
    {"layers.*.mlp.gate.weight", {kExpertCount, kAnyHidden}},
    {"layers.*.mlp.router.weight", {kExpertCount, kAnyHidden}},
    {"layers.*.mlp.experts.*.gate_proj.weight", {"moe_intermediate_size", kAnyHidden}},
    {"layers.*.mlp.experts.*.up_proj.weight", {"moe_intermediate_size", kAnyHidden}},
    {"layers.*.mlp.experts.*.down_proj.weight", {kAnyHidden, "moe_intermediate_size"}},
};
constexpr ModelConstraints kGeneral = {{}, {}, kGeneralStacks, kGeneralSizes, "lm_head.weight"};

// The vision towers of Qwen and GLM count their blocks as "depth".
constexpr StackConstraint kVisionStacks[] = {{"blocks.", "depth"}};
constexpr ModelConstraints kVision = {{}, {}, kVisionStacks, {}};

// The prefix "model.language_model." in "model.language_model.layers.3.mlp.up_proj.weight".
std::optional<std::string_view> prefix_before_layers(std::string_view fqn) {
  for (Words stack : {Words("layers."), Words("h."), Words("blocks.")}) {
    for (std::size_t at = fqn.find(stack); at != Words::npos; at = fqn.find(stack, at + 1)) {
      const std::size_t after = at + stack.size();
      const bool is_part = at == 0 || fqn[at - 1] == '.';
      if (is_part && after < fqn.size() && fqn[after] >= '0' && fqn[after] <= '9')
        return fqn.substr(0, at);
    }
  }
  return std::nullopt;
}

std::set<std::string> text_layer_prefixes(const Checkpoint& c, Progress* progress) {
  std::set<std::string> roots;
  for (TensorId tensor : cancellable_range(c.tensors(), progress)) {
    const std::string_view fqn = c.fqn(tensor);
    const auto root = is_outside_text_model(fqn) ? std::nullopt : prefix_before_layers(fqn);
    if (root) roots.emplace(*root);
    if (roots.size() > 1) break;
  }
  return roots;
}

// True if embeddings, layers or experts have different widths.
bool has_own_widths(const ConfigPart& part) {
  constexpr auto kOwn = std::to_array<Words>(
      {"embedding_size", "word_embed_proj_dim", "attention_hidden_size", "embedding_dim",
       "encoder_layers", "num_encoder_layers", "zero_expert_num"});
  return std::any_of(kOwn.begin(), kOwn.end(), [&](Words key) { return part.sizes.contains(key); });
}

bool has_own_classes(const ModelConfig& config) {
  return !config.architectures.empty() &&
         std::all_of(config.architectures.begin(), config.architectures.end(),
                     [&](const std::string& name) {
                       return is_transformers_class(name, config.parts.front().model_type);
                     });
}

}  // namespace

bool is_outside_text_model(std::string_view fqn) {
  constexpr auto kConcurrent = std::to_array<Words>(
      {"vision", "visual",  "image",   "img_",    "vit.",      "audio",          "speech",
       "video",  "wav2vec", "whisper", "talker",  "token2wav", "code_predictor", "codec",
       "mtp",    "nextn",   "eagle",   "qformer", "resampler", "vqmodel",        "depth_decoder"});
  return contains_any(fqn, kConcurrent);
}

bool has_tensor_or_parts(const Checkpoint& checkpoint, std::string_view fqn) {
  const std::string_view module = fqn.substr(0, fqn.rfind('.') + 1);
  for (TensorId tensor : checkpoint.tensors()) {
    const std::string_view other = checkpoint.fqn(tensor);
    const bool is_part = !module.empty() && other.starts_with(module) && !other.ends_with(".bias");
    if (other == fqn || is_part) return true;
  }
  return false;
}

const ConfigPart& text_part_of(const ModelConfig& config) {
  for (Words name : {Words("text_config"), Words("llm_config"), Words("language_config")}) {
    const ConfigPart* part = config.find(name);
    if (part != nullptr && !part->sizes.empty()) return *part;
  }
  return config.parts.front();
}

std::vector<ModelPart> text_model_without_table(const Checkpoint& checkpoint,
                                                const ModelConfig& config, Progress* progress) {
  if (!has_own_classes(config)) return {};
  const ConfigPart& text = text_part_of(config);
  const std::set<std::string> roots = text_layer_prefixes(checkpoint, progress);
  if (roots.size() != 1 || has_own_widths(text)) return {};
  return {{&text, &kGeneral, {*roots.begin()}, {"lm_head.weight"}}};
}

void add_vision_tower(const ModelConfig& config, std::vector<ModelPart>& parts) {
  const ConfigPart* part = config.find("vision_config");
  if (part == nullptr || !part->sizes.contains("depth") || !has_own_classes(config)) return;
  parts.push_back({part, &kVision, {"visual.", "model.visual.", "thinker.visual."}, {}});
}

void drop_unusual_heads(std::vector<SizeContradiction>& sizes) {
  auto is_of_heads = [](const SizeContradiction& one) {
    return std::any_of(one.keys.begin(), one.keys.end(),
                       [](const std::string& key) { return key.ends_with("head_dim"); });
  };
  const bool queries_differ = std::any_of(sizes.begin(), sizes.end(), [&](const auto& one) {
    return is_of_heads(one) && one.keys.front().ends_with("num_attention_heads");
  });
  if (queries_differ) std::erase_if(sizes, is_of_heads);
}

}  // namespace shw
