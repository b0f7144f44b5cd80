// KeyError messages whose name shows which model or which copy of it the program had in hand.
#include <algorithm>

#include "core/explain/message_kinds.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// Model families, as model_type in config.json begins.
constexpr std::string_view kFamilies[] = {
    "qwen",    "llama",    "mllama",    "mistral", "mixtral", "ministral", "gemma",    "deepseek",
    "phi3",    "phi4",     "phimoe",    "glm",     "chatglm", "internlm",  "internvl", "olmo",
    "granite", "minicpm",  "minimax",   "kimi",    "ernie",   "hunyuan",   "seed_oss", "gpt_oss",
    "exaone",  "nemotron", "falcon",    "cohere",  "smollm",  "smolvlm",   "bamba",    "jamba",
    "mamba",   "lfm2",     "apertus",   "bailing", "dots1",   "step3",     "longcat",  "mimo",
    "arcee",   "zamba",    "starcoder", "stablelm"};

bool is_model_type(const ErrorMessage& message) {
  const std::string& name = message.name;
  if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") != name.npos) return false;
  return std::any_of(std::begin(kFamilies), std::end(kFamilies),
                     [&](std::string_view family) { return name.starts_with(family); });
}

template <std::size_t N>
bool holds_any(const ErrorMessage& message, const std::string_view (&parts)[N]) {
  return std::any_of(std::begin(parts), std::end(parts), [&](std::string_view part) {
    return message.name.find(part) != message.name.npos;
  });
}

// InternLM2 has parts of these names too, behind "model.".
bool is_of_meta_form(const ErrorMessage& message) {
  constexpr std::string_view kParts[] = {".attention.wq.",  ".attention.wk.",   ".attention.wv.",
                                         ".attention.wo.",  "feed_forward.w1.", "feed_forward.w2.",
                                         "feed_forward.w3."};
  return message.name.starts_with("layers.") && holds_any(message, kParts);
}
bool is_of_vision_model(const ErrorMessage& message) {
  constexpr std::string_view kParts[] = {"language_model.", "visual.", "vision_tower.",
                                         "image_newline"};
  return holds_any(message, kParts);
}
bool is_of_diffusion_model(const ErrorMessage& message) {
  constexpr std::string_view kParts[] = {"model.diffusion_model.", "first_stage_model.",
                                         "cond_stage_model.", "conditioner.embedders.",
                                         "time_embed."};
  return holds_any(message, kParts);
}
// DeepSeek's layer for multi-token prediction has an embedding and a head of its own.
bool is_of_prediction_layer(const ErrorMessage& message) {
  constexpr std::string_view kParts[] = {".embed_tokens.", ".shared_head.", ".eh_proj.", ".enorm.",
                                         ".hnorm."};
  return message.name.find("layers.") != message.name.npos && holds_any(message, kParts);
}
bool is_of_megatron_adapter(const ErrorMessage& message) {
  return message.name.find(".adapter.linear_") != message.name.npos;
}

constexpr MessageKind kModelKeyMessages[] = {
    {.id = "model-type-key",
     .example = "KeyError: 'qwen3_moe'",
     .patterns = {"keyerror: <name>", "keyerror(<name>"},
     .meanings = {{{.id = "older-program",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "the program is older than this kind of model",
                    .text = "The name is a model_type of config.json, and the table of known "
                            "models does not have it. The tensors are not in question. Update "
                            "transformers, and the server or trainer that brings its own table.",
                    .decide = "The model's page names the first version that knows it.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts = is_model_type},
    {.id = "meta-form-key",
     .example = "KeyError: 'layers.0.attention.wk.weight'",
     .patterns = {"keyerror: <name>", "keyerror(<name>"},
     .meanings = {{{.id = "two-copies",
                    .rule = &kUnexpectedKey,
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "the program read the model's other copy, in Meta's or Mistral's form",
                    .text = "consolidated.safetensors (or *.pth) beside the Hugging Face files "
                            "holds the same weights under these names, and a loader that takes "
                            "every file reads both. Move it away, or tell vLLM to read that form: "
                            "--load-format mistral --config-format mistral --tokenizer-mode "
                            "mistral.",
                    .decide = "Whether consolidated* files are in the folder.",
                    .command = "shardwright ls CHECKPOINT NAME"}}},
     .accepts = is_of_meta_form},
    {.id = "vision-key",
     .example = "KeyError: 'language_model.embed_tokens.weight'",
     .patterns = {"keyerror: <name>", "keyerror(<name>"},
     .meanings = {{{.id = "renamed",
                    .rule = &kUnexpectedKey,
                    .wrong = kLoader,
                    .weight = 0.65,
                    .title = "the parts of a vision-language model have other prefixes here",
                    .text = "transformers 4.52 moved the language model and the vision tower "
                            "inside these classes. A fine-tune that was saved with another version "
                            "than the server knows has other prefixes. Update the server, or give "
                            "the tensors the names of the base model's files.",
                    .decide = "One name of the fine-tune against the same tensor of the base.",
                    .command = "shardwright ls CHECKPOINT NAME"},
                   {.id = "quantised",
                    .wrong = kLoader,
                    .weight = 0.3,
                    .title = "the server built this part for another quantisation or kind of model",
                    .text = "The vision tower is often left unquantised: quantization_config must "
                            "say so (ignore, modules_to_not_convert). A text-only class in "
                            "architectures has no such part at all.",
                    .decide = "architectures and quantization_config in config.json.",
                    .command = "shardwright check CHECKPOINT"}}},
     .accepts = is_of_vision_model},
    {.id = "prediction-layer-key",
     .example = "KeyError: 'model.layers.61.embed_tokens.weight'",
     .patterns = {"keyerror: <name>", "keyerror(<name>"},
     .meanings = {{{.id = "mtp-extra",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "the tensor belongs to the layer for multi-token prediction",
                    .text = "It is one layer more than num_hidden_layers, and this program does "
                            "not skip or build it. The checkpoint is good. Update the program, "
                            "set num_nextn_predict_layers in config.json as the files have it, or "
                            "leave that layer's tensors out of a copy.",
                    .decide = "Whether the layer's number is num_hidden_layers of config.json.",
                    .command = "shardwright ls CHECKPOINT NAME"}}},
     .accepts = is_of_prediction_layer},
    {.id = "diffusion-key",
     .example = "KeyError: 'model.diffusion_model.input_blocks.0.0.weight'",
     .patterns = {"keyerror: <name>", "keyerror(<name>"},
     .meanings = {{{.id = "component-missing",
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "the file is not a whole diffusion checkpoint of the kind that the "
                             "program expects",
                    .text = "The program looked for this tensor to tell the model by, and the file "
                            "has none of that name. It holds a part (UNet or transformer alone, "
                            "VAE, LoRA), the names of diffusers, or a model that this version does "
                            "not know. A part is loaded by its own loader (in ComfyUI: Load "
                            "Diffusion Model, Load VAE, Load LoRA).",
                    .decide = "The first names in the file.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .accepts = is_of_diffusion_model},
    {.id = "megatron-adapter-key",
     .example = "KeyError: \"NAME.adapter.linear_in.weight from model not in state dict: [...]\"",
     .patterns = {"keyerror: \"<name>~from model not in state dict"},
     .meanings = {{{.id = "adapter",
                    .rule = &kMissingKey,
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "the run builds LoRA adapters, and this checkpoint has none",
                    .text = "It is a checkpoint of the base model. Load it before the adapter is "
                            "put on (in Megatron-Bridge: as pretrained_checkpoint, with the "
                            "adapter's own folder as load), or resume from a step that was saved "
                            "with adapters.",
                    .decide = "Whether the checkpoint has any .adapter. name.",
                    .command = "shardwright ls CHECKPOINT adapter"}}},
     .accepts = is_of_megatron_adapter,
     .loader = "Megatron"},
};

}  // namespace

std::span<const MessageKind> model_key_messages() {
  return kModelKeyMessages;
}

}  // namespace shw
