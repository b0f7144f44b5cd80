#include "core/facts/reference/config_constraints.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/checked.h"
#include "core/base/parse_text.h"

namespace shw {
namespace {

using Words = std::string_view;

// --- decoders with Llama's names

constexpr auto kLlamaTypes = std::to_array<Words>(
    {"llama", "mistral", "qwen2", "phi3", "olmo2", "starcoder2", "stablelm", "granite", "cohere",
     "mixtral", "qwen2_moe", "qwen2_vl_text", "qwen2_vl"});
// Model types with a default head size of their own.
constexpr auto kHeadDimTypes =
    std::to_array<Words>({"qwen3", "qwen3_moe", "gemma", "gemma2", "gemma3_text", "glm4_moe"});
constexpr auto kLatentTypes = std::to_array<Words>({"deepseek_v2", "deepseek_v3"});
constexpr auto kModelRoots = std::to_array<Words>({"model.", ""});
constexpr StackConstraint kLlamaStacks[] = {
    {"layers.", "num_hidden_layers", "num_nextn_predict_layers",
     "mlp.experts.|block_sparse_moe.experts.", "num_experts|num_local_experts|n_routed_experts"}};
constexpr Words kHidden = "hidden_size", kFfn = "intermediate_size";
constexpr Words kQueries = "num_attention_heads*head_dim", kKeys = "num_key_value_heads*head_dim";
constexpr Words kExpertFfn = "moe_intermediate_size";
constexpr Words kExperts = "num_experts|num_local_experts|n_routed_experts";
constexpr SizeConstraint kLlamaSizes[] = {
    {"embed_tokens.weight", {"vocab_size", kHidden}},
    {"norm.weight", {kHidden}},
    {"layers.*.input_layernorm.weight", {kHidden}},
    {"layers.*.post_attention_layernorm.weight", {kHidden}},
    {"layers.*.self_attn.q_proj.weight", {kQueries, kHidden}},
    {"layers.*.self_attn.k_proj.weight", {kKeys, kHidden}},
    {"layers.*.self_attn.v_proj.weight", {kKeys, kHidden}},
    {"layers.*.self_attn.q_proj.bias", {kQueries}},
    {"layers.*.self_attn.k_proj.bias", {kKeys}},
    {"layers.*.self_attn.v_proj.bias", {kKeys}},
    {"layers.*.self_attn.o_proj.weight", {kHidden, kQueries}},
    {"layers.*.self_attn.qkv_proj.weight",
     {"num_attention_heads*head_dim+2*num_key_value_heads*head_dim", kHidden}},
    {"layers.*.mlp.gate_proj.weight", {kFfn, kHidden}},
    {"layers.*.mlp.up_proj.weight", {kFfn, kHidden}},
    {"layers.*.mlp.down_proj.weight", {kHidden, kFfn}},
    {"layers.*.mlp.gate_up_proj.weight", {"2*intermediate_size", kHidden}},
    {"layers.*.mlp.c_fc.weight", {kFfn, kHidden}},
    {"layers.*.mlp.c_proj.weight", {kHidden, kFfn}},
    {"layers.*.mlp.gate.weight", {kExperts, kHidden}},
    {"layers.*.mlp.experts.*.gate_proj.weight", {kExpertFfn, kHidden}},
    {"layers.*.mlp.experts.*.up_proj.weight", {kExpertFfn, kHidden}},
    {"layers.*.mlp.experts.*.down_proj.weight", {kHidden, kExpertFfn}},
    {"layers.*.mlp.shared_expert.gate_proj.weight", {"shared_expert_intermediate_size", kHidden}},
    {"layers.*.mlp.shared_expert.up_proj.weight", {"shared_expert_intermediate_size", kHidden}},
    {"layers.*.mlp.shared_expert.down_proj.weight", {kHidden, "shared_expert_intermediate_size"}},
    {"layers.*.block_sparse_moe.gate.weight", {"num_local_experts", kHidden}},
    {"layers.*.block_sparse_moe.experts.*.w1.weight", {kFfn, kHidden}},
    {"layers.*.block_sparse_moe.experts.*.w3.weight", {kFfn, kHidden}},
    {"layers.*.block_sparse_moe.experts.*.w2.weight", {kHidden, kFfn}},
};
constexpr Words kLatentQueries =
    "num_attention_heads*qk_nope_head_dim+"
    "num_attention_heads*qk_rope_head_dim";
constexpr Words kLatentValues = "num_attention_heads*v_head_dim";
constexpr Words kSharedFfn = "moe_intermediate_size*n_shared_experts";
constexpr SizeConstraint kLatentSizes[] = {
    {"embed_tokens.weight", {"vocab_size", kHidden}},
    {"norm.weight", {kHidden}},
    {"layers.*.input_layernorm.weight", {kHidden}},
    {"layers.*.post_attention_layernorm.weight", {kHidden}},
    {"layers.*.self_attn.q_proj.weight", {kLatentQueries, kHidden}},
    {"layers.*.self_attn.q_a_proj.weight", {"q_lora_rank", kHidden}},
    {"layers.*.self_attn.q_b_proj.weight", {kLatentQueries, "q_lora_rank"}},
    {"layers.*.self_attn.kv_a_proj_with_mqa.weight", {"kv_lora_rank+qk_rope_head_dim", kHidden}},
    {"layers.*.self_attn.kv_b_proj.weight",
     {"num_attention_heads*qk_nope_head_dim+num_attention_heads*v_head_dim", "kv_lora_rank"}},
    {"layers.*.self_attn.o_proj.weight", {kHidden, kLatentValues}},
    {"layers.*.mlp.gate_proj.weight", {kFfn, kHidden}},
    {"layers.*.mlp.up_proj.weight", {kFfn, kHidden}},
    {"layers.*.mlp.down_proj.weight", {kHidden, kFfn}},
    {"layers.*.mlp.gate.weight", {kExperts, kHidden}},
    {"layers.*.mlp.experts.*.gate_proj.weight", {kExpertFfn, kHidden}},
    {"layers.*.mlp.experts.*.up_proj.weight", {kExpertFfn, kHidden}},
    {"layers.*.mlp.experts.*.down_proj.weight", {kHidden, kExpertFfn}},
    {"layers.*.mlp.shared_experts.gate_proj.weight", {kSharedFfn, kHidden}},
    {"layers.*.mlp.shared_experts.up_proj.weight", {kSharedFfn, kHidden}},
    {"layers.*.mlp.shared_experts.down_proj.weight", {kHidden, kSharedFfn}},
};

// --- GPT-2 and derivatives; GPT-2's heads may be pruned, so their number is not checked

constexpr auto kGpt2Types = std::to_array<Words>({"gpt2"});
constexpr auto kTransformerRoots = std::to_array<Words>({"transformer.", ""});
constexpr StackConstraint kGpt2Stacks[] = {{"h.", "n_layer|num_hidden_layers"}};
constexpr Words kGpt2Hidden = "n_embd|hidden_size";
constexpr SizeConstraint kGpt2Sizes[] = {
    {"wte.weight", {"vocab_size", kGpt2Hidden}},
    {"wpe.weight", {"n_positions|max_position_embeddings", kGpt2Hidden}},
    {"ln_f.weight", {kGpt2Hidden}},
    {"h.*.ln_1.weight", {kGpt2Hidden}},
    {"h.*.ln_2.weight", {kGpt2Hidden}},
    {"h.*.attn.c_attn.weight", {kGpt2Hidden}},
    {"h.*.attn.c_proj.weight", {"", kGpt2Hidden}},
    {"h.*.mlp.c_fc.weight", {kGpt2Hidden, "n_inner"}},
    {"h.*.mlp.c_proj.weight", {"n_inner", kGpt2Hidden}},
};

constexpr auto kNeoxTypes = std::to_array<Words>({"gpt_neox"});
constexpr auto kNeoxRoots = std::to_array<Words>({"gpt_neox.", ""});
constexpr StackConstraint kNeoxStacks[] = {{"layers.", "num_hidden_layers"}};
constexpr SizeConstraint kNeoxSizes[] = {
    {"embed_in.weight", {"vocab_size", kHidden}},
    {"final_layer_norm.weight", {kHidden}},
    {"layers.*.attention.query_key_value.weight", {"3*hidden_size", kHidden}},
    {"layers.*.attention.dense.weight", {kHidden, kHidden}},
    {"layers.*.mlp.dense_h_to_4h.weight", {kFfn, kHidden}},
    {"layers.*.mlp.dense_4h_to_h.weight", {kHidden, kFfn}},
};

constexpr auto kBloomTypes = std::to_array<Words>({"bloom"});
constexpr StackConstraint kBloomStacks[] = {{"h.", "n_layer|num_hidden_layers"}};
constexpr Words kBloomHidden = "hidden_size|n_embed";
constexpr SizeConstraint kBloomSizes[] = {
    {"word_embeddings.weight", {"vocab_size", kBloomHidden}},
    {"ln_f.weight", {kBloomHidden}},
    {"h.*.self_attention.query_key_value.weight", {"", kBloomHidden}},
    {"h.*.self_attention.dense.weight", {kBloomHidden, kBloomHidden}},
    {"h.*.mlp.dense_h_to_4h.weight", {"", kBloomHidden}},
    {"h.*.mlp.dense_4h_to_h.weight", {kBloomHidden}},
};

constexpr auto kFalconTypes = std::to_array<Words>({"falcon"});
constexpr StackConstraint kFalconStacks[] = {{"h.", "num_hidden_layers|n_layer"}};
constexpr SizeConstraint kFalconSizes[] = {
    {"word_embeddings.weight", {"vocab_size", kHidden}},
    {"ln_f.weight", {kHidden}},
    {"h.*.self_attention.query_key_value.weight", {"", kHidden}},
    {"h.*.self_attention.dense.weight", {kHidden, kHidden}},
    {"h.*.mlp.dense_h_to_4h.weight", {"ffn_hidden_size", kHidden}},
    {"h.*.mlp.dense_4h_to_h.weight", {kHidden, "ffn_hidden_size"}},
};

constexpr auto kOptTypes = std::to_array<Words>({"opt"});
constexpr auto kOptRoots = std::to_array<Words>({"model.decoder.", "decoder."});
constexpr StackConstraint kOptStacks[] = {{"layers.", "num_hidden_layers"}};
constexpr SizeConstraint kOptSizes[] = {
    {"embed_tokens.weight", {"vocab_size", "word_embed_proj_dim"}},
    {"embed_positions.weight", {"max_position_embeddings+2", kHidden}},
    {"layers.*.self_attn.q_proj.weight", {kHidden, kHidden}},
    {"layers.*.self_attn.k_proj.weight", {kHidden, kHidden}},
    {"layers.*.self_attn.v_proj.weight", {kHidden, kHidden}},
    {"layers.*.self_attn.out_proj.weight", {kHidden, kHidden}},
    {"layers.*.fc1.weight", {"ffn_dim", kHidden}},
    {"layers.*.fc2.weight", {kHidden, "ffn_dim"}},
};

constexpr auto kMambaTypes = std::to_array<Words>({"mamba"});
constexpr auto kMambaRoots = std::to_array<Words>({"backbone.", ""});
constexpr StackConstraint kMambaStacks[] = {{"layers.", "num_hidden_layers"}};
constexpr SizeConstraint kMambaSizes[] = {
    {"embeddings.weight", {"vocab_size", kHidden}},
    {"norm_f.weight", {kHidden}},
    {"layers.*.norm.weight", {kHidden}},
    {"layers.*.mixer.in_proj.weight", {"", kHidden}},
    {"layers.*.mixer.out_proj.weight", {kHidden}},
    {"layers.*.mixer.A_log", {"", "state_size"}},
};

// --- encoders, and encoder-decoder models

constexpr auto kBertTypes = std::to_array<Words>({"bert", "roberta", "xlm-roberta"});
constexpr auto kBertRoots = std::to_array<Words>({"bert.", "roberta.", ""});
constexpr StackConstraint kBertStacks[] = {{"encoder.layer.", "num_hidden_layers"}};
constexpr SizeConstraint kBertSizes[] = {
    {"embeddings.word_embeddings.weight", {"vocab_size", kHidden}},
    {"embeddings.position_embeddings.weight", {"max_position_embeddings", kHidden}},
    {"embeddings.token_type_embeddings.weight", {"type_vocab_size", kHidden}},
    {"encoder.layer.*.attention.self.query.weight", {"", kHidden}},
    {"encoder.layer.*.attention.self.key.weight", {"", kHidden}},
    {"encoder.layer.*.attention.self.value.weight", {"", kHidden}},
    {"encoder.layer.*.attention.output.dense.weight", {kHidden}},
    {"encoder.layer.*.intermediate.dense.weight", {kFfn, kHidden}},
    {"encoder.layer.*.output.dense.weight", {kHidden, kFfn}},
};

constexpr auto kT5Types = std::to_array<Words>({"t5", "mt5"});
constexpr auto kNoRoots = std::to_array<Words>({""});
constexpr StackConstraint kT5Stacks[] = {{"encoder.block.", "num_layers"},
                                         {"decoder.block.", "num_decoder_layers"}};
constexpr Words kT5Heads = "num_heads*d_kv";
constexpr SizeConstraint kT5Sizes[] = {
    {"shared.weight", {"vocab_size", "d_model"}},
    {"encoder.block.*.layer.*.SelfAttention.q.weight", {kT5Heads, "d_model"}},
    {"encoder.block.*.layer.*.SelfAttention.k.weight", {kT5Heads, "d_model"}},
    {"encoder.block.*.layer.*.SelfAttention.v.weight", {kT5Heads, "d_model"}},
    {"encoder.block.*.layer.*.SelfAttention.o.weight", {"d_model", kT5Heads}},
    {"encoder.block.*.layer.*.DenseReluDense.wi.weight", {"d_ff", "d_model"}},
    {"encoder.block.*.layer.*.DenseReluDense.wi_0.weight", {"d_ff", "d_model"}},
    {"encoder.block.*.layer.*.DenseReluDense.wi_1.weight", {"d_ff", "d_model"}},
    {"encoder.block.*.layer.*.DenseReluDense.wo.weight", {"d_model", "d_ff"}},
    {"decoder.block.*.layer.*.SelfAttention.q.weight", {kT5Heads, "d_model"}},
    {"decoder.block.*.layer.*.SelfAttention.k.weight", {kT5Heads, "d_model"}},
    {"decoder.block.*.layer.*.SelfAttention.v.weight", {kT5Heads, "d_model"}},
    {"decoder.block.*.layer.*.SelfAttention.o.weight", {"d_model", kT5Heads}},
    {"decoder.block.*.layer.*.EncDecAttention.q.weight", {kT5Heads, "d_model"}},
    {"decoder.block.*.layer.*.EncDecAttention.k.weight", {kT5Heads, "d_model"}},
    {"decoder.block.*.layer.*.EncDecAttention.v.weight", {kT5Heads, "d_model"}},
    {"decoder.block.*.layer.*.EncDecAttention.o.weight", {"d_model", kT5Heads}},
    {"decoder.block.*.layer.*.DenseReluDense.wi.weight", {"d_ff", "d_model"}},
    {"decoder.block.*.layer.*.DenseReluDense.wi_0.weight", {"d_ff", "d_model"}},
    {"decoder.block.*.layer.*.DenseReluDense.wi_1.weight", {"d_ff", "d_model"}},
    {"decoder.block.*.layer.*.DenseReluDense.wo.weight", {"d_model", "d_ff"}},
};

constexpr auto kWhisperTypes = std::to_array<Words>({"whisper"});
constexpr StackConstraint kWhisperStacks[] = {{"encoder.layers.", "encoder_layers"},
                                              {"decoder.layers.", "decoder_layers"}};
constexpr SizeConstraint kWhisperSizes[] = {
    {"decoder.embed_tokens.weight", {"vocab_size", "d_model"}},
    {"decoder.embed_positions.weight", {"max_target_positions", "d_model"}},
    {"encoder.embed_positions.weight", {"max_source_positions", "d_model"}},
    {"encoder.conv1.weight", {"d_model", "num_mel_bins"}},
    {"encoder.layers.*.self_attn.q_proj.weight", {"d_model", "d_model"}},
    {"encoder.layers.*.self_attn.k_proj.weight", {"d_model", "d_model"}},
    {"encoder.layers.*.self_attn.v_proj.weight", {"d_model", "d_model"}},
    {"encoder.layers.*.fc1.weight", {"encoder_ffn_dim", "d_model"}},
    {"encoder.layers.*.fc2.weight", {"d_model", "encoder_ffn_dim"}},
    {"decoder.layers.*.self_attn.q_proj.weight", {"d_model", "d_model"}},
    {"decoder.layers.*.self_attn.k_proj.weight", {"d_model", "d_model"}},
    {"decoder.layers.*.self_attn.v_proj.weight", {"d_model", "d_model"}},
    {"decoder.layers.*.encoder_attn.k_proj.weight", {"d_model", "d_model"}},
    {"decoder.layers.*.encoder_attn.v_proj.weight", {"d_model", "d_model"}},
    {"decoder.layers.*.fc1.weight", {"decoder_ffn_dim", "d_model"}},
    {"decoder.layers.*.fc2.weight", {"d_model", "decoder_ffn_dim"}},
};

constexpr auto kTowerTypes =
    std::to_array<Words>({"clip_text_model", "clip_vision_model", "siglip_vision_model"});
constexpr auto kTowerRoots = std::to_array<Words>({"text_model.", "vision_model.", ""});
constexpr StackConstraint kTowerStacks[] = {{"encoder.layers.", "num_hidden_layers"}};
constexpr SizeConstraint kTowerSizes[] = {
    {"embeddings.token_embedding.weight", {"vocab_size", kHidden}},
    {"embeddings.patch_embedding.weight", {kHidden, "num_channels"}},
    {"encoder.layers.*.layer_norm1.weight", {kHidden}},
    {"encoder.layers.*.self_attn.q_proj.weight", {kHidden, kHidden}},
    {"encoder.layers.*.self_attn.k_proj.weight", {kHidden, kHidden}},
    {"encoder.layers.*.self_attn.v_proj.weight", {kHidden, kHidden}},
    {"encoder.layers.*.self_attn.out_proj.weight", {kHidden, kHidden}},
    {"encoder.layers.*.mlp.fc1.weight", {kFfn, kHidden}},
    {"encoder.layers.*.mlp.fc2.weight", {kHidden, kFfn}},
};

constexpr ModelConstraints kModels[] = {
    {kLlamaTypes, kModelRoots, kLlamaStacks, kLlamaSizes, "lm_head.weight", true},
    {kHeadDimTypes, kModelRoots, kLlamaStacks, kLlamaSizes, "lm_head.weight"},
    {kLatentTypes, kModelRoots, kLlamaStacks, kLatentSizes, "lm_head.weight"},
    {kGpt2Types, kTransformerRoots, kGpt2Stacks, kGpt2Sizes, "lm_head.weight"},
    {kNeoxTypes, kNeoxRoots, kNeoxStacks, kNeoxSizes, "embed_out.weight"},
    {kBloomTypes, kTransformerRoots, kBloomStacks, kBloomSizes, "lm_head.weight"},
    {kFalconTypes, kTransformerRoots, kFalconStacks, kFalconSizes, "lm_head.weight"},
    {kOptTypes, kOptRoots, kOptStacks, kOptSizes, "lm_head.weight"},
    {kMambaTypes, kMambaRoots, kMambaStacks, kMambaSizes, "lm_head.weight"},
    {kBertTypes, kBertRoots, kBertStacks, kBertSizes},
    {kT5Types, kNoRoots, kT5Stacks, kT5Sizes},
    {kWhisperTypes, kModelRoots, kWhisperStacks, kWhisperSizes},
    {kTowerTypes, kTowerRoots, kTowerStacks, kTowerSizes},
};

// --- models with a config per part

constexpr auto kInnerTextRoots =
    std::to_array<Words>({"language_model.model.", "model.language_model.", "model."});
constexpr auto kInnerTowerRoots =
    std::to_array<Words>({"vision_tower.vision_model.", "model.vision_tower.vision_model.",
                          "vision_tower.", "model.vision_tower."});
constexpr auto kClipTextRoots = std::to_array<Words>({"text_model."});
constexpr auto kClipVisionRoots = std::to_array<Words>({"vision_model."});
struct PartRow {
  Words type, part;
  std::span<const Words> roots;
};
constexpr PartRow kPartRows[] = {
    {"llava", "text_config", kInnerTextRoots},    {"llava", "vision_config", kInnerTowerRoots},
    {"gemma3", "text_config", kInnerTextRoots},   {"gemma3", "vision_config", kInnerTowerRoots},
    {"qwen2_vl", "text_config", kInnerTextRoots}, {"clip", "text_config", kClipTextRoots},
    {"clip", "vision_config", kClipVisionRoots},
};

const ModelConstraints* constraints_of(std::string_view model_type) {
  for (const ModelConstraints& constraints : kModels) {
    if (std::find(constraints.types.begin(), constraints.types.end(), model_type) !=
        constraints.types.end())
      return &constraints;
  }
  return nullptr;
}

bool take(std::optional<std::int64_t> found, std::int64_t& out) {
  out = found.value_or(0);
  return found.has_value();
}

struct Factor {
  std::int64_t value = 0;
  std::string words;
};

// The value of a key. If several names exist for it, all present ones must agree.
std::optional<Factor> factor_of(const ModelPart& part, std::string_view key,
                                std::vector<std::string>& keys) {
  const ConfigPart& config = *part.config;
  const std::string before = config.name.empty() ? "" : config.name + ".";
  std::optional<Factor> found;
  for (std::string_view name : split_at(key, '|')) {
    auto size = config.sizes.find(name);
    if (size == config.sizes.end()) continue;
    if (found && found->value != size->second) return std::nullopt;
    if (!found) keys.push_back(before + std::string(name));
    if (!found) found = Factor{size->second, fmt::format("{}{} {}", before, name, size->second)};
  }
  if (found || key != "head_dim" || !part.constraints->derives_head_dim || !config.derives_head_dim)
    return found;
  auto hidden = factor_of(part, "hidden_size", keys);
  auto heads = factor_of(part, "num_attention_heads", keys);
  if (!hidden || !heads || heads->value == 0 || hidden->value % heads->value != 0)
    return std::nullopt;
  return Factor{hidden->value / heads->value, "(" + hidden->words + " / " + heads->words + ")"};
}

// Last layers that have a row per label in every class of transformers 5.24 that has the name.
constexpr auto kClassHeads = std::to_array<Words>(
    {"classifier", "classifier.*", "classifier.linear", "classifier.linear_out",
     "classifier.out_proj", "classification_head.out_proj", "cls_classifier",
     "distillation_classifier", "head", "logits_proj", "score", "score.out_proj"});

// Normalises "qwen3_moe" and "Qwen3Moe" to "qwen3moe".
std::string normalised_class_name(std::string_view name) {
  for (std::string_view part : {"_text", "_model"}) {
    if (name.ends_with(part)) name.remove_suffix(part.size());
  }
  std::string out;
  for (char c : name) {
    if (c != '_' && c != '-') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

}  // namespace

bool is_transformers_class(std::string_view name, std::string_view model_type) {
  constexpr auto kEndings = std::to_array<Words>(
      {"model", "forcausallm", "lmheadmodel", "formaskedlm", "forconditionalgeneration",
       "classification", "forquestionanswering", "forpretraining", "formultiplechoice",
       "fornextsentenceprediction", "withprojection", "detection", "segmentation",
       "fordepthestimation", "formaskedimagemodeling", "forctc", "forxvector"});
  const std::string lower = normalised_class_name(name);
  return lower.starts_with(normalised_class_name(model_type)) &&
         std::any_of(kEndings.begin(), kEndings.end(),
                     [&](Words ending) { return lower.ends_with(ending); });
}

std::vector<ModelPart> parts_with_known_constraints(const ModelConfig& config) {
  std::vector<ModelPart> parts;
  const ConfigPart& whole = config.parts.front();
  for (const std::string& name : config.architectures) {
    if (!is_transformers_class(name, whole.model_type)) return {};
  }
  bool has_text = false;
  for (const PartRow& row : kPartRows) {
    const ConfigPart* part = row.type == whole.model_type ? config.find(row.part) : nullptr;
    const ModelConstraints* constraints =
        part == nullptr ? nullptr : constraints_of(part->model_type);
    if (constraints == nullptr) continue;
    has_text = has_text || row.part == "text_config";
    parts.push_back({part, constraints, {row.roots.begin(), row.roots.end()}, {}});
    if (constraints->head.empty()) continue;
    parts.back().heads = {"language_model." + std::string(constraints->head),
                          std::string(constraints->head)};
  }
  const ModelConstraints* constraints = constraints_of(whole.model_type);
  // Before transformers 4.52 Qwen2-VL had its text settings at the top level.
  const bool has_own_text = whole.model_type == "qwen2_vl" && config.find("text_config") != nullptr;
  if (constraints == nullptr || has_text || has_own_text) return parts;
  parts.push_back(
      {&whole, constraints, {constraints->roots.begin(), constraints->roots.end()}, {}});
  if (!constraints->head.empty()) parts.back().heads = {std::string(constraints->head)};
  return parts;
}

std::optional<ModelPart> classifier_head_part(const ModelConfig& config) {
  static constexpr ModelConstraints kNone;
  if (config.architectures.size() != 1 || config.has_own_code) return std::nullopt;
  const Words name = config.architectures.front();
  // A class per frame or pair of speakers is not a class per label.
  const bool classifies =
      name.ends_with("Classification") && !name.ends_with("FrameClassification");
  if (!classifies || !is_transformers_class(name, config.parts.front().model_type))
    return std::nullopt;
  ModelPart part{&config.parts.front(), &kNone, {}, {}};
  part.classifies = true;
  return part;
}

std::optional<ConfiguredSize> configured_size(const ModelPart& part, std::string_view expression) {
  if (expression.empty()) return std::nullopt;
  ConfiguredSize said;
  for (std::string_view term : split_at(expression, '+')) {
    std::int64_t product = 1;
    std::string words;
    for (std::string_view one : split_at(term, '*')) {
      auto factor = is_all_digits(one)
                        ? std::optional(Factor{std::stoll(std::string(one)), std::string(one)})
                        : factor_of(part, one, said.keys);
      if (!factor || !take(checked_mul(product, factor->value), product)) return std::nullopt;
      words += (words.empty() ? "" : " x ") + factor->words;
    }
    if (!take(checked_add(said.value, product), said.value)) return std::nullopt;
    said.words += (said.words.empty() ? "" : " + ") + words;
  }
  if (expression.find_first_of("*+") != std::string_view::npos)
    said.words += fmt::format(" = {}", said.value);
  return said;
}

ConstraintsByName constraints_by_name(const std::vector<ModelPart>& parts) {
  ConstraintsByName constraints;
  for (const ModelPart& part : parts) {
    for (const std::string& root : part.roots) {
      for (const SizeConstraint& constraint : part.constraints->sizes)
        constraints.emplace(root + std::string(constraint.name),
                            ConstraintOfName{&part, constraint.extents});
    }
    // The head is like the embedding, the first constraint of every model with a head.
    for (const std::string& head : part.heads)
      constraints.emplace(head, ConstraintOfName{&part, part.constraints->sizes.front().extents});
    if (!part.classifies) continue;
    for (const Words head : kClassHeads) {
      const ConstraintOfName labels{&part, {kLabelNames}};
      const auto [at, is_new] = constraints.emplace(std::string(head) + ".weight", labels);
      // The class table gives no size for the rows of the head; their number is that of the labels.
      if (!is_new && at->second.extents[0].empty()) at->second = labels;
    }
  }
  return constraints;
}

std::string replace_numbers_by_stars(std::string_view name) {
  std::string out;
  for (std::string_view part : split_at(name, '.')) {
    if (!out.empty()) out += '.';
    out += is_all_digits(part) ? "*" : part;
  }
  return out;
}

}  // namespace shw
