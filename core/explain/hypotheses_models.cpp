// Hypotheses in which both sides are whole and of two kinds of model: another text encoder, other
// image channels, another window, a gated layer against a plain one.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/explain/hypotheses.h"
#include "core/explain/message_kinds.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// The text encoder's width in diffusion models; empty if no family has it.
std::string_view family_of_text_width(std::int64_t width) {
  switch (width) {
    case 768:
      return "Stable Diffusion 1";
    case 1024:
      return "Stable Diffusion 2";
    case 2048:
      return "SDXL";
    case 4096:
      return "a model with T5";
    default:
      return "";
  }
}

// "down_blocks.1.attentions.0.transformer_blocks.0.attn2.to_k.weight": takes the encoded text.
bool reads_encoded_text(std::string_view name) {
  const bool is_key = name.find("to_k") != name.npos || name.find("to_v") != name.npos;
  return name.find("attn2") != name.npos && is_key;
}

bool is_first_convolution(std::string_view name) {
  return name.ends_with("input_blocks.0.0.weight") || name.ends_with("conv_in.weight");
}

std::string_view kind_of_channels(std::int64_t channels) {
  switch (channels) {
    case 4:
      return "a plain model";
    case 8:
      return "an image-editing (instruct-pix2pix) or depth model";
    case 9:
      return "an inpainting model";
    default:
      return "another kind of model";
  }
}

Hypothesis different_family(double weight) {
  Hypothesis one{"H-D", &kShapeMismatch, FaultSide::kRequest, weight};
  one.command = "shardwright info CHECKPOINT";
  return one;
}

bool is_widening_layer(std::string_view name) {
  constexpr std::array<std::string_view, 5> kWords = {"intermediate", ".fc1", ".w1.", "up_proj",
                                                      "ffn."};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return name.find(word) != name.npos; });
}

}  // namespace

void add_hypothesis_diffusion_width(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  const ErrorMessage& message = shapes.message;
  if (shapes.differing != std::vector<std::size_t>{1}) return;
  const std::int64_t saved = message.saved[1], current = message.current[1];
  if (reads_encoded_text(message.name)) {
    const std::string_view from = family_of_text_width(saved), to = family_of_text_width(current);
    if (from.empty() || to.empty()) return;
    Hypothesis one = different_family(0.92);
    one.title = fmt::format("the file is for {}, the loading model for {}", from, to);
    one.text = fmt::format(
        "This layer takes the encoded prompt, {} wide in the file and {} in the model. Nothing is "
        "damaged: load the file with the model, config and text encoder of its own family.",
        saved, current);
    one.decide = "Check the same layer in the other files of the run (LoRA, ControlNet).";
    all.push_back(std::move(one));
  } else if (is_first_convolution(message.name)) {
    Hypothesis one = different_family(0.9);
    one.title = fmt::format("the file is {}, the loading model {}", kind_of_channels(saved),
                            kind_of_channels(current));
    one.text = fmt::format(
        "The first layer takes {} image channels in the file and {} in the model: inpainting adds "
        "a mask and an image to the 4 channels. Load the file with the config (or pipeline) of the "
        "same kind.",
        saved, current);
    one.decide = "Compare in_channels in both configs.";
    all.push_back(std::move(one));
  }
}

namespace {

// The layer that takes the pixels, the patches or the sound.
bool is_input_layer_name(std::string_view name) {
  constexpr std::array<std::string_view, 8> kWords = {
      "img_in.",      "x_embedder.", "patch_embed", "conv_in.",
      "conv1.weight", "stem.",       "input_proj.", "input_blocks.0.0."};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return name.find(word) != name.npos; });
}

}  // namespace

// Channels of the input: of an image, of patches of it, or bands of a spectrum.
void add_hypothesis_input_channels(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  const ErrorMessage& message = shapes.message;
  constexpr std::int64_t kMaxOfImage = 16;  // hidden layers of convolutions have more
  if (shapes.traits.state || shapes.traits.expert || is_first_convolution(message.name) ||
      shapes.differing != std::vector<std::size_t>{1})
    return;
  const std::int64_t saved = message.saved[1], current = message.current[1];
  const bool is_convolution = message.saved.size() >= 4;
  const bool is_image = is_convolution && std::max(saved, current) <= kMaxOfImage;
  if (!is_image && !is_input_layer_name(message.name)) return;
  Hypothesis one{"H-IC", &kShapeMismatch, FaultSide::kRequest, 0.9};
  one.title = fmt::format("the first layer takes {} {} in the file and {} in the model", saved,
                          is_image                    ? "image channels"
                          : message.saved.size() == 3 ? "bands of the sound"
                                                      : "values per patch",
                          current);
  one.text =
      "The rest of the layer agrees, so only the input differs: grey or colour images, additional "
      "masks or control images (inpainting, fill, depth, edit), a different number of mel bands, "
      "or a different patch size. Build the model with the input of the save (in_channels, "
      "num_channels, num_mel_bins), or take the variant of the checkpoint that fits. Nothing is "
      "damaged.";
  one.decide = "Compare the number of input channels in both configs.";
  one.command = "shardwright info CHECKPOINT";
  one.evidence.emplace_back("saved_channels", saved);
  one.evidence.emplace_back("current_channels", current);
  all.push_back(std::move(one));
}

// PyTorch lays a convolution out as [out, in, H, W]; "kernel" is of Flax and Keras: [H, W, in,
// out].
bool is_window_dim(const ErrorMessage& message, std::size_t dim) {
  const std::size_t dims = message.saved.size();
  if (dims < 4) return false;
  return message.name.ends_with("kernel") ? dim < dims - 2 : dim >= 2;
}

// The sizes of a convolution beside its two channels: its window.
void add_hypothesis_window(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  const ErrorMessage& message = shapes.message;
  if (shapes.traits.state || shapes.traits.expert || shapes.differing.empty()) return;
  const bool is_window = std::ranges::all_of(
      shapes.differing, [&](std::size_t dim) { return is_window_dim(message, dim); });
  if (message.saved.size() > 5 || !is_window) return;
  const bool is_weight = message.name.ends_with("weight") || message.name.ends_with("kernel");
  if (!is_weight) return;
  Hypothesis one{"H-CW", &kShapeMismatch, FaultSide::kRequest, 0.8};
  one.title = "the convolution's kernel size differs between model and file";
  one.text =
      "The channels agree, but not the kernel: a different patch size, kernel size or number of "
      "frames per patch. The model was built with a different setting, or is a different variant. "
      "Nothing is damaged.";
  one.decide = "Compare patch_size, kernel_size or t_patch_size in both configs.";
  one.command = "shardwright ls CHECKPOINT";
  all.push_back(std::move(one));
}

void add_hypothesis_gated(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  if (shapes.traits.state || shapes.traits.expert || shapes.traits.half ||
      !is_widening_layer(shapes.message.name))
    return;
  if (shapes.differing != std::vector<std::size_t>{0}) return;
  const std::int64_t saved = shapes.message.saved[0], current = shapes.message.current[0];
  const bool file = saved > current;
  const std::int64_t small = file ? current : saved, large = file ? saved : current;
  if (large % 2 != 0 || small != large / 2) return;
  Hypothesis one{"H-GU", &kShapeMismatch, FaultSide::kRequest, 0.6};
  one.title = file ? "the file has a gated layer (gate and up in one), the model a plain one"
                   : "the model has a gated layer (gate and up in one), the file a plain one";
  one.text =
      "Exactly twice the rows. SwiGLU and GeGLU put two projections into one weight. The loading "
      "class differs from the one that made the file: it may be custom code "
      "(trust_remote_code=True), or a setting such as swiglu or the activation differs. Nothing is "
      "damaged.";
  one.decide =
      "Check hidden_act (or swiglu) in the config, and the next layer's inputs: half of these rows "
      "suggests a gate.";
  one.command = "shardwright ls CHECKPOINT";
  one.evidence.emplace_back("factor", std::int64_t{2});
  all.push_back(std::move(one));
}

namespace {

bool is_power_of_two(std::int64_t value) {
  return value > 0 && (value & (value - 1)) == 0;
}

// True if a size differs and is not 2, 4, 8... times the other: hardly a part of the whole.
bool has_uneven_sizes(const ShapeCase& shapes) {
  return std::any_of(shapes.differing.begin(), shapes.differing.end(), [&](std::size_t dim) {
    const std::int64_t saved = shapes.message.saved[dim], current = shapes.message.current[dim];
    const std::int64_t small = std::min(saved, current), large = std::max(saved, current);
    return small > 0 && (large % small != 0 || !is_power_of_two(large / small));
  });
}

struct ConfigSize {
  std::string_view word;           // in the tensor's name
  std::string_view rows, columns;  // what config.json calls the two sizes
};
// Names in transformers' language models; the first row whose word is in the name is used.
constexpr std::array<ConfigSize, 20> kConfigSizes = {{
    {"embed_tokens", "vocab_size", "hidden_size"},
    {"word_embeddings", "vocab_size", "hidden_size"},
    {"lm_head", "vocab_size", "hidden_size"},
    {"wte.", "vocab_size", "hidden_size"},
    {"tok_embeddings", "vocab_size", "hidden_size"},
    {"q_norm", "head_dim", ""},
    {"k_norm", "head_dim", ""},
    {"q_proj", "num_attention_heads x head_dim", "hidden_size"},
    {"k_proj", "num_key_value_heads x head_dim", "hidden_size"},
    {"v_proj", "num_key_value_heads x head_dim", "hidden_size"},
    {"o_proj", "hidden_size", "num_attention_heads x head_dim"},
    {"mlp.gate.", "the number of experts", "hidden_size"},
    {"gate_proj", "intermediate_size", "hidden_size"},
    {"up_proj", "intermediate_size", "hidden_size"},
    {"down_proj", "hidden_size", "intermediate_size"},
    {"lora_A", "r", "the input of the layer"},
    {"lora_B", "the output of the layer", "r"},
    {"input_layernorm", "hidden_size", ""},
    {"post_attention_layernorm", "hidden_size", ""},
    {"model.norm.", "hidden_size", ""},
}};

// What a size of models for voices and pictures follows from.
struct KnownSize {
  std::string_view word, text;
};
constexpr KnownSize kKnownSizes[] = {
    {"enc_p.emb_phone",
     " 256 and 768 are the features of RVC's first and second version: choose "
     "the version of the model in the program, or update the program."},
    {"text_embedding.",
     " The rows are the symbols of the text: the version of the program (v1, v2) or its list of "
     "symbols differs from training."},
    {"enc_p.emb.",
     " The rows are the text symbols: text/symbols.py or the symbols in the config differ from "
     "training. Use the config that came with the weights."},
    {"dec.ups.",
     " The windows follow from the sample rate (32k, 40k, 48k) and its upsample rates: use the "
     "config from training."},
    {"dec.noise_convs.",
     " The windows follow from the sample rate (32k, 40k, 48k) and its upsample rates: use the "
     "config from training."},
    {"emb_g.", " The rows are the speakers: n_speakers in the config."},
    {"bottom_up.",
     " The channels and windows of a backbone follow from its depth and width (ResNet 18 to 152, "
     "ResNeXt groups, Swin sizes): the config names a different one."},
    {"backbone.",
     " The channels and windows of a backbone follow from its depth and width (ResNet 18 to 152, "
     "ResNeXt groups, Swin sizes): the config names a different one."},
    {"input_proj.",
     " Its inputs are the channels of the backbone: the config names a different backbone."},
    {"bbox_pred", " It has four rows per class, so the number of classes differs."},
};

// Some loaders print only "weight". So many rows of one width are most often a vocabulary.
bool is_vocabulary_without_name(const ShapeCase& shapes) {
  constexpr std::int64_t kMinTokens = 20'000;
  const ErrorMessage& message = shapes.message;
  return message.name.find('.') == message.name.npos && message.saved.size() == 2 &&
         shapes.differing == std::vector<std::size_t>{0} &&
         std::min(message.saved[0], message.current[0]) >= kMinTokens;
}

// " Its dim 0 is vocab_size: 64000 in the file, 125696 in the model."; empty if the name tells
// none.
std::string config_sizes_text(const ShapeCase& shapes) {
  const ErrorMessage& message = shapes.message;
  for (const KnownSize& size : kKnownSizes) {
    if (message.name.find(size.word) != message.name.npos) return std::string(size.text);
  }
  if (shapes.traits.state || message.saved.size() > 2) return "";
  if (is_vocabulary_without_name(shapes))
    return fmt::format(
        " This many rows are usually a vocabulary: vocab_size is {} for the file and {} for the "
        "model. Tokens were added (resize_token_embeddings) or config.json was not saved with "
        "them: set vocab_size to the file's, or load first and resize then.",
        message.saved[0], message.current[0]);
  const auto found = std::find_if(
      kConfigSizes.begin(), kConfigSizes.end(),
      [&](const ConfigSize& size) { return message.name.find(size.word) != message.name.npos; });
  if (found == kConfigSizes.end()) return "";
  std::string text;
  for (std::size_t dim : shapes.differing) {
    const std::string_view key = dim == 0 ? found->rows : found->columns;
    if (dim > 1 || key.empty()) continue;
    text += fmt::format(" Its dim {} is {}: {} in the file, {} in the model.", dim, key,
                        message.saved[dim], message.current[dim]);
  }
  return text;
}

}  // namespace

void add_hypothesis_buffer(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  constexpr std::array<std::string_view, 6> kBuffers = {
      "inv_freq", "rotary_emb.", "freqs_cis", "cos_cached", "position_ids", "attn.masked_bias"};
  const std::string& name = shapes.message.name;
  const bool is_buffer = std::any_of(kBuffers.begin(), kBuffers.end(), [&](std::string_view word) {
    return name.find(word) != name.npos;
  });
  if (!is_buffer || shapes.traits.state) return;
  Hypothesis one{"H-B", &kShapeMismatch, FaultSide::kRequest, 0.9};
  one.title = "a buffer that the model computes has a different length";
  one.text =
      "Rotary frequencies, position numbers and masks follow from head_dim, rope settings and the "
      "maximum length in config.json. They hold no trained values: skip the buffer on load. If "
      "head_dim or the rope settings differ, the config belongs to another model.";
  one.decide = "Compare head_dim, the rope settings and max_position_embeddings in both configs.";
  one.command = "shardwright check CHECKPOINT";
  all.push_back(std::move(one));
}

void add_hypothesis_different_model(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  const Extents &saved = shapes.message.saved, &current = shapes.message.current;
  if (saved == current) return;
  bool alone = all.empty();
  bool ranks_differ = saved.size() != current.size();
  // A row of the table may have a meaning of its own for sizes that differ.
  const bool has_own_meaning =
      shapes.message.kind != nullptr && !shapes.message.kind->meanings[0].title.empty();
  const bool are_weights =
      shapes.traits.known && !shapes.traits.state && !shapes.worlds && !has_own_meaning;
  Hypothesis one{"H-M", &kShapeMismatch, FaultSide::kEither, 0.1};
  if (alone) one.confidence = config_sizes_text(shapes).empty() ? 0.5 : 0.7;
  if (!alone && are_weights &&
      (has_uneven_sizes(shapes) || !shapes.traits.split_by_tensor_parallelism))
    one.confidence = 0.4;
  auto a = volume(saved), b = volume(current);
  bool equal_volume = a && b && *a == *b;
  one.title = "the checkpoint belongs to another model or configuration";
  one.text = !ranks_differ ? "Neither side is damaged: the loading model has a different "
                             "configuration (hidden size, heads, vocabulary, number of experts)."
             : equal_volume
                 ? "The number of elements is equal, the number of dimensions is not: one side "
                   "stores the tensor flattened or with its experts or layers stacked. It may be "
                   "the same tensor in another format."
                 : "The numbers of dimensions differ: one side stacks experts or layers along an "
                   "extra axis, or these are different tensors.";
  if (const std::string sizes = config_sizes_text(shapes); !sizes.empty()) one.text += sizes;
  one.decide =
      "Compare the configurations of both runs, and check whether neighbouring tensors differ too.";
  one.command = check_command("--spec SPEC.json");
  if (equal_volume) one.evidence.emplace_back("elements", *a);
  all.push_back(std::move(one));
}

}  // namespace shw
