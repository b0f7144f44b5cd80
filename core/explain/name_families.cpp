// Missing and unexpected names that are those of two programs for one kind of model, or of the same
// modules under other numbers.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/explain/hypotheses.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// Parts of names that one program gives and the others of its kind do not.
struct NameFamily {
  std::string_view who;
  std::array<std::string_view, 8> words;
};
constexpr NameFamily kFamilies[] = {
    {"OpenCLIP and OpenAI's CLIP",
     {"visual.transformer.", "transformer.resblocks.", "visual.conv1", "visual.class_embedding",
      "visual.proj", "visual.ln_p", "visual.trunk."}},
    {"transformers' CLIP",
     {"text_model.encoder.", "text_model.embeddings.", "vision_model.encoder.",
      "vision_model.embeddings.", "visual_projection."}},
    {"Meta's Llama",
     {"tok_embeddings.", "attention.wq.", "attention.wk.", "attention.wo.", "feed_forward.w1.",
      "attention_norm.", "ffn_norm."}},
    {"transformers' language models",
     {"embed_tokens.", "self_attn.q_proj.", "self_attn.o_proj.", "mlp.gate_proj.", "mlp.down_proj.",
      "input_layernorm.", "post_attention_layernorm."}},
    {"Megatron Core",
     {"self_attention.linear_qkv.", "self_attention.linear_proj.", "mlp.linear_fc1.",
      "mlp.linear_fc2.", "embedding.word_embeddings."}},
    {"Megatron-LM's first form",
     {"language_model.encoder.layers.", "language_model.embedding.",
      "self_attention.query_key_value.", "mlp.dense_h_to_4h."}},
    {"GPT-2", {"attn.c_attn.", "attn.c_proj.", "mlp.c_fc.", "wte.", "wpe."}},
    {"transformers' BERT",
     {"attention.self.query.", "attention.output.dense.", "intermediate.dense.",
      "embeddings.word_embeddings."}},
    {"fairseq", {"encoder.sentence_encoder.", "decoder.sentence_encoder.", "in_proj_weight"}},
    {"transformers' ViT",
     {"attention.attention.query.", "attention.output.dense.", "embeddings.patch_embeddings.",
      "layernorm_before."}},
    {"timm's ViT", {"attn.qkv.", "attn.proj.", "patch_embed.proj.", "mlp.fc1.", "pos_embed"}},
    {"the first form of Stable Diffusion",
     {"input_blocks.", "output_blocks.", "middle_block.", "time_embed.", "first_stage_model."}},
    {"diffusers' UNet", {"down_blocks.", "up_blocks.", "mid_block.", "time_embedding."}},
    {"the first form of Flux",
     {"double_blocks.", "single_blocks.", "img_in.", "txt_in.", "final_layer."}},
    {"diffusers' transformers",
     {"single_transformer_blocks.", "transformer_blocks.", "context_embedder.", "x_embedder.",
      "proj_out."}},
    {"OpenAI's Whisper",
     {"encoder.blocks.", "decoder.blocks.", "mlp_ln.", "cross_attn.", "attn_ln."}},
    {"transformers' Whisper", {"encoder_attn.", "model.encoder.layers.", "model.decoder.layers."}},
    {"torchvision's ResNet", {"layer1.", "layer2.", "layer3.", "layer4.", "bn1.", "conv1."}},
    {"detectron2's ResNet", {"stem.conv1.", "res2.", "res3.", "res4.", "res5."}},
    {"GGUF", {"blk.", "token_embd.", "ffn_gate.", "attn_q.", "attn_output."}},
};

// The family that most of the names are of, more than half of them; null if none.
const NameFamily* family_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMaxNames = 256, kMinNames = 2;
  const std::size_t looked_at = std::min(names.size(), kMaxNames);
  const NameFamily* best = nullptr;
  std::size_t most = std::max(kMinNames, looked_at / 2 + 1) - 1;
  for (const NameFamily& family : kFamilies) {
    const auto is_of_family = [&](const std::string& name) {
      return std::any_of(family.words.begin(), family.words.end(), [&](std::string_view word) {
        return !word.empty() && name.find(word) != name.npos;
      });
    };
    const auto count = static_cast<std::size_t>(std::count_if(
        names.begin(), names.begin() + static_cast<std::ptrdiff_t>(looked_at), is_of_family));
    if (count <= most) continue;
    most = count;
    best = &family;
  }
  return best;
}

// "17.to_k.weight" without its numbers: "#.to_k.weight".
std::string without_numbers(std::string_view name) {
  std::string text;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t end = std::min(name.find('.', at), name.size());
    const std::string_view part = name.substr(at, end - at);
    const bool is_number = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    text += is_number ? "#" : part;
    if (end < name.size()) text += '.';
    at = end + 1;
  }
  return text;
}

// Adds a hypothesis for modules that both sides have under other numbers.
void add_renumbered(const KeyLists& keys, std::vector<Hypothesis>& all) {
  constexpr std::size_t kMinNames = 2;
  std::set<std::string> saved;
  for (const std::string& name : keys.unexpected) {
    if (std::string text = without_numbers(name); text != name) saved.insert(std::move(text));
  }
  const auto has_other_number = [&](const std::string& name) {
    return saved.count(without_numbers(name)) != 0;
  };
  const auto count = static_cast<std::size_t>(
      std::count_if(keys.missing.begin(), keys.missing.end(), has_other_number));
  if (count < kMinNames || count * 10 < keys.missing.size() * 8) return;
  Hypothesis one{"renumbered", &kMissingKey, FaultSide::kRequest, 0.88};
  one.title = "the same modules have different numbers in the file and the model";
  one.text = fmt::format(
      "{} of {} missing names are in the file with a different number: the model expects \"{}\", "
      "the file has \"{}\". The model has different blocks or a different order: a different base "
      "model (SD 1.5 instead of SDXL), a different depth, or a library version that orders its "
      "modules differently. Do not rename by guessing: match them by shape.",
      count, keys.missing.size(), keys.missing.front(), keys.unexpected.front());
  one.decide = "Compare the highest number on each side, and the shapes of one pair.";
  one.command = "shardwright ls CHECKPOINT";
  one.evidence.emplace_back("names", static_cast<std::int64_t>(count));
  all.push_back(std::move(one));
}

}  // namespace

void add_name_families(const KeyLists& keys, std::vector<Hypothesis>& all) {
  const NameFamily* asked = family_of(keys.missing);
  const NameFamily* saved = family_of(keys.unexpected);
  if (asked == nullptr || saved == nullptr || asked == saved) {
    add_renumbered(keys, all);
    return;
  }
  Hypothesis one{"other-format", &kMissingKey, FaultSide::kRequest, 0.93};
  one.title = "the file uses the tensor names of another program";
  one.text = fmt::format(
      "The unexpected names are those of {}, and the missing ones are those of {}. The weights can "
      "be the same. Use the file published for this program, load with the other program, or "
      "convert (names, and often fused or transposed tensors too).",
      saved->who, asked->who);
  one.decide = "Check whether the model's page has files for both programs.";
  one.command = "shardwright ls CHECKPOINT";
  one.evidence.emplace_back("saved_as", keys.unexpected.front());
  one.evidence.emplace_back("asked_as", keys.missing.front());
  all.push_back(std::move(one));
}

}  // namespace shw
