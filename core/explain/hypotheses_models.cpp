// Hypotheses in which both sides are whole and of two kinds of model: another text encoder, other
// image channels, a gated layer against a plain one.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/explain/hypotheses.h"
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
  Hypothesis one{"H-D", &kShapeMismatch, WrongSide::kRequest, weight};
  one.command = "shardwright info CHECKPOINT";
  return one;
}

bool widens(std::string_view name) {
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
    one.title = fmt::format("the file is for {}, the model that loads for {}", from, to);
    one.text = fmt::format(
        "This layer takes the encoded prompt, {} wide in the file and {} in the model. Nothing is "
        "damaged: load the file with the model, config and text encoder of its own family.",
        saved, current);
    one.decide = "The same layer in the other files of the run (LoRA, ControlNet).";
    all.push_back(std::move(one));
  } else if (is_first_convolution(message.name)) {
    Hypothesis one = different_family(0.9);
    one.title = fmt::format("the file is {}, the model that loads {}", kind_of_channels(saved),
                            kind_of_channels(current));
    one.text = fmt::format(
        "The first layer takes {} image channels in the file and {} in the model: inpainting adds "
        "a mask and an image to the 4 channels. Load the file with the config (or pipeline) of its "
        "own kind.",
        saved, current);
    one.decide = "in_channels in the config of both.";
    all.push_back(std::move(one));
  }
}

void add_hypothesis_gated(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  if (shapes.traits.state || shapes.traits.expert || shapes.traits.half ||
      !widens(shapes.message.name))
    return;
  if (shapes.differing != std::vector<std::size_t>{0}) return;
  const std::int64_t saved = shapes.message.saved[0], current = shapes.message.current[0];
  if (saved != 2 * current && current != 2 * saved) return;
  const bool file = saved > current;
  Hypothesis one{"H-GU", &kShapeMismatch, WrongSide::kRequest, 0.6};
  one.title = file ? "the file has a gated layer (gate and up in one), the model a plain one"
                   : "the model has a gated layer (gate and up in one), the file a plain one";
  one.text =
      "Exactly twice the rows. SwiGLU and GeGLU put two projections into one weight. The class "
      "that "
      "loads is another one than the file was made with: its own code (trust_remote_code=True), or "
      "a setting such as swiglu or the activation. Nothing is damaged.";
  one.decide =
      "hidden_act (or swiglu) in the config, and the rows of the next layer: half of these "
      "rows speaks for a gate.";
  one.command = "shardwright ls CHECKPOINT";
  one.evidence.emplace_back("factor", std::int64_t{2});
  all.push_back(std::move(one));
}

}  // namespace shw
