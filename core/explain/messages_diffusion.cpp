// Messages of diffusers and ComfyUI.
#include "core/explain/message_kinds.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::string_view kDiffusers = "diffusers", kComfy = "ComfyUI";

constexpr Interpretation kAdapterOtherModel = {
    .id = "adapter",
    .wrong = kLoader,
    .weight = 0.85,
    .title = "the adapter was trained on a model where this tensor has another size",
    .text =
        "The first shape is what the adapter makes, the second is the model's. The names agree and "
        "the sizes do not: it is an adapter for a variant (more input channels, a pruned or fused "
        "model, another version). This tensor is left out, so the adapter does not do what it "
        "learned.",
    .decide = "The model that the adapter was trained on.",
    .command = "shardwright ls CHECKPOINT"};
constexpr Interpretation kOtherTrainersNames = {
    .id = "adapter-names",
    .rule = &kAdapterContradicts,
    .wrong = kLoader,
    .weight = 0.7,
    .title = "the converter does not know these names or this kind of adapter",
    .text =
        "diffusers translates the names of other trainers (kohya, xlabs, ai-toolkit), and these "
        "keys stayed over or were looked for in vain. lokr_, hada_ and lora_mid are LyCORIS kinds "
        "that need a program which knows them; other names mean a trainer or a model newer than "
        "this version of diffusers.",
    .decide = "The suffixes of the adapter's names.",
    .command = "shardwright ls CHECKPOINT"};
constexpr Interpretation kNoComponent = {
    .id = "component-missing",
    .wrong = kLoader,
    .weight = 0.85,
    .title = "the file does not hold this part of the pipeline",
    .text =
        "A checkpoint file can hold the diffusion model alone; the VAE and the text encoders are "
        "then files of their own. Load them with nodes or arguments of their own (VAELoader, "
        "CLIPLoader; vae=, text_encoder=), or take a file that holds all. Nothing is damaged.",
    .decide = "Whether the file has names of a VAE (first_stage_model., vae.) or a text encoder.",
    .command = "shardwright ls CHECKPOINT"};
constexpr Interpretation kComfyLeftOut = {
    .id = "other-variant",
    .rule = &kMissingKey,
    .weight = 0.6,
    .title = "a part of the pipeline was loaded without some of its tensors",
    .text =
        "ComfyUI goes on and leaves these at their start. A single projection, logit_scale or the "
        "encoder of a VAE that only decodes is as a rule not needed; many names mean another "
        "variant of this part, or names in another layout.",
    .decide = "How many names are listed, of how many.",
    .command = "shardwright ls CHECKPOINT"};

constexpr Interpretation kOtherVariant = {
    .id = "other-model",
    .rule = &kShapeMismatch,
    .wrong = kLoader,
    .weight = 0.55,
    .title = "the file is of another variant of the model than the config",
    .text =
        "config.json of the component gives the sizes, the file the tensors. Another number of "
        "channels or blocks, an inpainting variant, or a file of another model was given with it.",
    .decide = "The config of the component against the file's own model.",
    .command = "shardwright ls CHECKPOINT NAME"};

constexpr MessageKind kDiffusionMessages[] = {
    {.id = kShapes,
     .example = "Cannot load MODEL because NAME expected shape torch.Size([4]), but got "
                "torch.Size([9])",
     .patterns = {"because <name> expected shape <current>, but got <saved>",
                  "cannot load <name> because it has shape <saved> in the checkpoint but shape "
                  "<current>",
                  "<before>expected shape <current>, but got <saved>",
                  "<before>has an expected shape of: <current>, but the loaded gguf weight decodes "
                  "to shape: <saved>"},
     .meanings = {{kOtherVariant}},
     .loader = kDiffusers},
    {.id = kMissingKeyForm,
     .example = "Cannot load MODEL from FOLDER because the following keys are missing: NAME",
     .patterns = {"because the following keys are missing: <names>"},
     .meanings = {{{.id = "other-model",
                    .rule = &kMissingKey,
                    .wrong = kLoader,
                    .weight = 0.6,
                    .title = "the config asks for parts that the file does not have",
                    .text = "config.json of the component is of another variant of the model than "
                            "the file: FLUX.1-dev has guidance_embedder, schnell has not. Or the "
                            "file has the names of another program: load it with "
                            "from_single_file.",
                    .decide = "The names in the file against those in the message.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .loader = kDiffusers},
    {.id = "pipeline-parts",
     .example = "ValueError: Pipeline <class NAME> expected {'vae', 'unet'}, but only {'vae'} were "
                "passed.",
     .patterns = {", but only {"},
     .meanings = {{{.id = "component-missing",
                    .rule = &kMissingFile,
                    .wrong = kDisk,
                    .weight = 0.8,
                    .title = "parts of the pipeline are not in the folder",
                    .text = "The first list is what the pipeline needs, the second what was found. "
                            "A part's folder is missing, model_index.json does not name it, or the "
                            "folder is of another pipeline. Download the rest, or pass the part "
                            "to from_pretrained by its name.",
                    .decide = "model_index.json against the folders beside it.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kDiffusers},
    {.id = kShapes,
     .example = "WARNING SHAPE MISMATCH NAME WEIGHT NOT MERGED torch.Size([3072, 64]) != "
                "torch.Size([3072, 384])",
     .patterns = {"shape mismatch <name> weight not merged <saved> != <current>",
                  "error lora <name> shape '<current>' is invalid for input of size <numel>"},
     .meanings = {{kAdapterOtherModel}},
     .loader = kComfy},
    {.id = kShapes,
     .example = "Expected the flattened shape of the current param (NAME) to be torch.Size([8, 1]) "
                "but is torch.Size([16, 1]).",
     .patterns = {"expected the flattened shape of the current param (<name> to be <saved> but is "
                  "<current>"},
     .meanings = {{{.id = "quantised",
                    .rule = &kShapeMismatch,
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "a packed weight is of a layer with another number of elements",
                    .text = "Both are lengths of bitsandbytes' packed bytes, two 4-bit values in "
                            "each: the first is the file's, the second follows from the model. "
                            "config.json is of another variant of the model than the file.",
                    .decide = "Whether both lengths, times two, are products of known sizes.",
                    .command = "shardwright ls CHECKPOINT NAME"}}},
     .loader = kDiffusers},
    {.id = "adapter-leftovers",
     .example = "ValueError: The following keys have not been correctly renamed: NAME, NAME",
     .patterns = {"have not been correctly renamed: <name>",
                  "have not been correctly be renamed: <name>",
                  "should be empty at this point but has", "should be at this point but has",
                  "incompatible keys detected", "failed to match keys when loading lora",
                  "handling for key ("},
     .meanings = {{kOtherTrainersNames}},
     .loader = kDiffusers},
    {.id = "adapter-leftovers",
     .example = "KeyError: 'blocks.0.ffn.2.lora_down.weight'",
     .patterns = {"keyerror: <name>", "keyerror(<name>"},
     .meanings = {{kOtherTrainersNames}},
     .accepts =
         [](const ErrorMessage& message) {
           return message.name.find("lora_down") != message.name.npos ||
                  message.name.find("lora_up") != message.name.npos ||
                  message.name.find("lokr_") != message.name.npos ||
                  message.name.ends_with(".alpha");
         }},
    {.id = "half-adapter",
     .example = "ValueError: Missing lora_A weight for NAME",
     .patterns = {"missing lora_a weight for <name>", "missing lora_b weight for <name>",
                  "missing lora_down weight for <name>", "missing lora_up weight for <name>"},
     .meanings = {{{.rule = &kHalfPair,
                    .wrong = kDisk,
                    .weight = 0.8,
                    .title = "the adapter has one matrix of two for this module",
                    .text = "LoRA multiplies lora_A with lora_B (lora_down and lora_up), and the "
                            "file has one of them under this name. The other was not saved, lies "
                            "under another trainer's name, or its tensor was dropped as empty.",
                    .decide = "The names of this module in the file.",
                    .command = "shardwright ls CHECKPOINT NAME"}}},
     .loader = kDiffusers},
    {.id = "component-missing",
     .example = "ERROR: VAE is invalid: None",
     .patterns = {"vae is invalid: none", "clip input is invalid: none", "no vae weights detected",
                  "no clip/text encoder weights in checkpoint",
                  "failed to load <name> weights for this component appear to be missing",
                  "does not contain controlnet or t2i adapter data",
                  "- tensor <name> not in model file"},
     .meanings = {{kNoComponent}}},
    {.id = kMissingKeyForm,
     .example = "clip missing: ['text_projection.weight']",
     .patterns = {"clip missing: <names>", "missing vae keys <names>", "unet missing: <names>",
                  "missing controlnet keys: <names>"},
     .meanings = {{kComfyLeftOut}},
     .loader = kComfy},
    {.id = kUnexpectedKeyForm,
     .example = "unet unexpected: ['NAME']",
     .patterns = {"unet unexpected: <names>", "left over keys in diffusion model: <names>",
                  "leftover keys: <names>", "leftover vae keys <names>"},
     .loader = kComfy},
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
    {.id = "image-channels",
     .example = "Given groups=1, weight of size [320, 4, 3, 3], expected input[2, 9, 64, 64] to "
                "have 4 channels, but got 9 channels instead",
     .patterns =
         {"given groups=1, weight of size~to have <#weight_channels> channels, but got "
          "<#input_channels> channels instead",
          "to have <#weight_channels> channels, but got <#input_channels> channels instead"},
     .meanings = {{{.id = "other-base-model",
                    .rule = &kShapeMismatch,
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "the model is of another kind than the program that feeds it",
                    .text = "The first layer counts image channels. In diffusion models 4 is a "
                            "plain one, 9 an inpainting one, 8 an editing one, 16 the latents of "
                            "SD3 and Flux. Use the pipeline and the VAE of the model's own kind.",
                    .decide = "in_channels in the model's config.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "lora-other-model",
     .example = "ValueError: Could not find a module type (out of NAMES) that would accept those "
                "keys: NAME",
     .patterns = {"that would accept those keys: <name>",
                  "no lora keys associated to <name> found with the prefix"},
     .meanings = {{{.id = "adapter-names",
                    .rule = &kAdapterContradicts,
                    .wrong = WrongSide::kEither,
                    .weight = 0.65,
                    .title = "the LoRA file has no factors for this part under names known here",
                    .text = "As a warning about a text encoder it is harmless where only the UNet "
                            "or transformer was trained. Else the file is of another trainer or "
                            "base model, or holds a whole checkpoint instead of a LoRA.",
                    .decide = "The names in the LoRA file.",
                    .command = "shardwright ls CHECKPOINT"}}}},
    {.id = "workflow-names-file",
     .example = "Value not in list: ckpt_name: 'NAME' not in ['OTHER']",
     .patterns = {"value not in list: ckpt_name: <name>", "value not in list: lora_name: <name>",
                  "value not in list: vae_name: <name>", "value not in list: unet_name: <name>",
                  "value not in list: clip_name~: <name>",
                  "value not in list: control_net_name: <name>"},
     .meanings = {{{.id = "wrong-path",
                    .wrong = kLoader,
                    .weight = 0.92,
                    .title = "the workflow names a file that ComfyUI does not find",
                    .text = "No file was opened. Put it into the folder of its kind under models/ "
                            "(checkpoints, loras, vae, diffusion_models, text_encoders), with this "
                            "very name, and refresh; or choose one of the list in the node.",
                    .decide = "The names in the list of the message.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "ComfyUI"},
    {.id = "load-failed-before",
     .example = "AttributeError: 'NoneType' object has no attribute 'lowvram'",
     .patterns = {"'nonetype' object has no attribute 'lowvram'",
                  "'nonetype' object has no attribute 'sd_checkpoint_info'"},
     .meanings = {{{.id = "details-missing",
                    .weight = 0.3,
                    .title = "the model was not loaded, and this line does not say why",
                    .text = "The web UI goes on without a model after a failed load. The reason "
                            "stands further up in the console: paste that error.",
                    .decide = "The first traceback after the line \"Loading weights\".",
                    .command = "shardwright check CHECKPOINT"}}},
     .certainty = MessageCertainty::kThatItFailed,
     .loader = "Stable Diffusion web UI"},
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
