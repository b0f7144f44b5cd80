// Messages of diffusers and ComfyUI.
#include "core/explain/message_kinds.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::string_view kDiffusers = "diffusers";

constexpr MessageKind kDiffusionMessages[] = {
    {.id = kShapes,
     .example = "Cannot load MODEL because NAME expected shape torch.Size([4]), but got "
                "torch.Size([9])",
     .patterns = {"because <name> expected shape <current>, but got <saved>",
                  "cannot load <name> because it has shape <saved> in the checkpoint but shape "
                  "<current>",
                  "<before>expected shape <current>, but got <saved>"},
     .loader = kDiffusers},
    {.id = "adapter-names",
     .example = "ValueError: Invalid LoRA checkpoint. Make sure all LoRA param names contain "
                "`'lora'` substring.",
     .patterns = {"invalid lora checkpoint"},
     .meanings = {{{.id = "adapter",
                    .rule = &kUnexpectedKey,
                    .wrong = kDisk,
                    .weight = 0.7,
                    .title = "the file holds more than low-rank factors",
                    .text = "Each name must contain \"lora\". Whole weights, trained embeddings, "
                            "names of another trainer (kohya, LyCORIS) or a full checkpoint are "
                            "refused.",
                    .decide = "The names in the file that do not contain it.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .loader = kDiffusers},
    {.id = "lora-not-loaded",
     .example = "lora key not loaded: lora_unet_double_blocks_0_img_attn_proj.alpha",
     .patterns = {"lora key not loaded: <name>", "lora key not loaded <name>"},
     .meanings = {{{.id = "adapter-names",
                    .rule = &kAdapterContradicts,
                    .wrong = WrongSide::kEither,
                    .weight = 0.5,
                    .title = "the adapter was trained for another model, or its names are of "
                             "another trainer",
                    .text = "Each trainer of adapters names modules in its own way (kohya, "
                            "diffusers, PEFT), and a program knows those of the models that it "
                            "knows. Keys that it does not find are left out, and the adapter does "
                            "less than it learned, or nothing.",
                    .decide = "Whether some keys were loaded: none means names, some another "
                              "model.",
                    .command = "shardwright check CHECKPOINT"}}}},
    {.id = "model-not-detected",
     .example = "ERROR: Could not detect model type of: model.safetensors",
     .patterns = {"could not detect model type of: <name>", "could not detect model type of"},
     .meanings = {{{.id = "renamed",
                    .rule = &kWrappedNames,
                    .wrong = WrongSide::kEither,
                    .weight = 0.5,
                    .title = "the names in the file are of no model that the program knows",
                    .text = "It tells models by the names and shapes of a few tensors. A prefix "
                            "before them, an adapter or a part (VAE, text encoder) in the place of "
                            "the model, a quantised file, or a model newer than the program are "
                            "not told.",
                    .decide = "The names in the file.",
                    .command = "shardwright ls CHECKPOINT"}}}},
};

}  // namespace

std::span<const MessageKind> diffusion_messages() {
  return kDiffusionMessages;
}

}  // namespace shw
