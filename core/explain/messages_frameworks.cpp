// Messages of training frameworks and their converters: verl, torchtune, torchtitan, axolotl,
// unsloth.
#include "core/explain/message_kinds.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::string_view kVerl = "verl", kTune = "torchtune", kUnsloth = "unsloth";

constexpr Interpretation kPlainTensors = {
    .id = "plain-tensors",
    .rule = &kPortability,
    .wrong = kLoader,
    .weight = 0.85,
    .title = "the rank file holds plain tensors where the merger expects DTensors",
    .text =
        "A run on one GPU saves plain tensors, and so does every run for what is not sharded "
        "(buffers). The checkpoint is good: a plain tensor is whole, and equal on all ranks. Use a "
        "later version of the merger, or `shardwright convert`, which takes both.",
    .decide = "The number of rank files: one file means that each tensor in it is whole.",
    .command = "shardwright info CHECKPOINT"};

constexpr MessageKind kFrameworkMessages[] = {
    {.id = "merge-plain-tensors",
     .example = "assert isinstance(weight, torch.distributed._tensor.DTensor)",
     .patterns = {"isinstance(weight, torch.distributed", "isinstance(tensor, dtensor)",
                  "'tensor' object has no attribute '_local_tensor'",
                  "'parameter' object has no attribute '_local_tensor'"},
     .meanings = {{kPlainTensors}}},
    {.id = kMissingKeyForm,
     .example = "AssertionError: Missing keys in collected state dict: ['NAME']",
     .patterns = {"missing keys in collected state dict: <names>"},
     .loader = kVerl},
    {.id = kUnexpectedKeyForm,
     .example = "AssertionError: Extra keys in collected state dict: ['NAME']",
     .patterns = {"extra keys in collected state dict: <names>"},
     .loader = kVerl},
    {.id = kShapes,
     .example = "Shape mismatch for key 'NAME': original torch.Size([4]) vs collected "
                "torch.Size([8])",
     .patterns = {"shape mismatch for key <name>: original <current> vs collected <saved>"},
     .meanings = {{{.id = "replicated-concatenated",
                    .rule = &kAxisGrown,
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "the merger joined the rank files otherwise than they were cut",
                    .text = "\"Original\" is the model's shape, \"collected\" what the merger made "
                            "of the rank files. A whole multiple means that equal copies (a tied "
                            "or replicated tensor) were put end to end; other sizes mean padding, "
                            "or a folder with rank files of two runs. The rank files may be good.",
                    .decide = "The ratio of the two sizes against the number of rank files.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = kVerl},
    {.id = kShapes,
     .example = "rank #3 tensor NAME shape torch.Size([4096, 4096]) != torch.Size([2048, 4096])",
     .patterns = {"rank #<#rank> tensor <name> shape <saved> != <current>"},
     .meanings = {{{.id = "tensor-parallel",
                    .rule = &kShapeMismatch,
                    .wrong = kLoader,
                    .weight = 0.6,
                    .title = "the part of a tensor that rank 0 sends is not the part that the rank "
                             "expects",
                    .text = "verl cuts the whole Hugging Face tensor over the tensor-parallel "
                            "ranks. The heads, the vocabulary or the width of the Megatron model "
                            "are not the checkpoint's, or they do not divide by the ranks.",
                    .decide = "config.json against the Megatron arguments of the run.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kVerl},
    {.id = "torchtune-names",
     .example = "Error converting the state dict. Found unexpected key: \"NAME\".",
     .patterns = {"error converting the state dict. found unexpected key: <name>"},
     .meanings = {{{.id = "renamed",
                    .rule = &kUnexpectedKey,
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "torchtune's converter for this model does not know the name",
                    .text = "Each checkpointer translates the names of one form: HF, Meta or "
                            "torchtune's own. The file is of another form than checkpointer and "
                            "model_type say, or the model has a part (q_norm, a bias, a vision "
                            "tower) that this version does not map.",
                    .decide = "model_type of the recipe against architectures in config.json.",
                    .command = "shardwright ls CHECKPOINT NAME"}}},
     .loader = kTune},
    {.id = "resume-without-state",
     .example = "If should_load_recipe_state is True, recipe_checkpoint file must be provided.",
     .patterns = {"recipe_checkpoint file must be provided", "no intermediate checkpoint was found",
                  "but no full-weight save found"},
     .meanings = {{{.id = "no-optimizer-state",
                    .rule = &kHalfPair,
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "the run was told to resume, and what it resumes with was not found",
                    .text = "To resume needs the trainer's state (recipe_state.pt, the step, the "
                            "optimizer) beside the weights. The path is the weights' alone, no "
                            "step was saved yet, or it was saved elsewhere. To start from the "
                            "weights, turn resuming off.",
                    .decide = "Whether the folder of an earlier step has the trainer's state.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kTune},
    {.id = "adapter-incomplete",
     .example = "Missing LoRA key NAME from adapter state dict",
     .patterns = {"missing lora key <name> from adapter", "missing non-lora key <name> from base",
                  "unexpected key loading base model", "unexpected key loading adapter",
                  "adapter checkpoint not found in state_dict"},
     .meanings = {{{.id = "adapter",
                    .rule = &kMissingKey,
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "base and adapter do not share the parameters as the recipe expects",
                    .text = "torchtune wants each parameter in one of the two: LoRA factors in the "
                            "adapter's file, all else in the base's. The adapter was trained with "
                            "other target modules, or the two files were given the other way "
                            "round, or the file is a merged one.",
                    .decide = "The names in both files.",
                    .command = "shardwright ls CHECKPOINT lora"}}},
     .loader = kTune},
    {.id = "no-checkpoint-here",
     .example = "--checkpoint.load_step=500 not found at FOLDER",
     .patterns = {"load_step=<#step> not found at <name>", "ckpt_step=<#step> specified but",
                  "could not find fsdp checkpoint <name>", "unable to load checkpoint from <name>",
                  "path is invalid: <name>", "not found because checkpoint.folder <name>",
                  "error: checkpoint at <name> not found"},
     .meanings = {{{.id = "wrong-path",
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "the checkpoint that was asked for is not in this folder",
                    .text = "The step was not saved, its save did not end (steps without their "
                            "metadata do not count), or the path is a level too high or too low.",
                    .decide = "Which steps are there, and whether they are whole.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "merge-leftovers",
     .example = "Unsloth: Extracted keys = {'NAME'} do not match!",
     .patterns = {"unsloth: extracted keys = <names>"},
     .meanings = {{{.id = "adapter-names",
                    .rule = &kUnexpectedKey,
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "the merge found no place for some tensors of the adapter",
                    .text = "Nothing was merged. The adapter covers layers (routers, fused "
                            "experts, embeddings) that this version does not merge, or its names "
                            "have another prefix than the model's.",
                    .decide = "What the names have in common.",
                    .command = "shardwright ls CHECKPOINT lora"}}},
     .loader = kUnsloth},
    {.id = "merge-without-config",
     .example = "RuntimeError: Unsloth: `config.json` does not exist inside FOLDER",
     .patterns = {"unsloth: `config.json` does not exist inside"},
     .meanings = {{{.id = "merge-unfinished",
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "the folder to convert holds no merged model",
                    .text = "To make GGUF, unsloth first merges the adapter into the base and "
                            "writes the result there. That step wrote nothing, or into another "
                            "folder. Update unsloth and unsloth_zoo; or call "
                            "save_pretrained_merged, look for config.json, and convert that folder "
                            "with llama.cpp's convert_hf_to_gguf.py.",
                    .decide = "What is in the folder.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kUnsloth},
    {.id = "merge-counts",
     .example = "Unsloth: Saving LoRA finetune failed since # of LoRAs = 210 does not match # of "
                "saved modules = 0.",
     .patterns = {"# of loras = <#factors> does not match # of saved modules = <#merged>"},
     .meanings = {{{.id = "adapter-names",
                    .rule = &kMissingKey,
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "some adapted layers were not found in the base model's files",
                    .text = "The first number is the adapter's layers, the second those that were "
                            "merged. 0 means that the names differ (the files have another prefix, "
                            "or fused experts); twice as many means that the folder holds two "
                            "copies of the model. The merged files are not to be used; the adapter "
                            "is good.",
                    .decide = "One adapted layer's name against the base model's names, and the "
                              "base's index against its files.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = kUnsloth},
    {.id = "merge-left-out",
     .example = "Unsloth: MoE LoRA merge fell back to the base weight on 57 per-expert tensor(s)",
     .patterns = {"lora merge fell back to the base weight on <#left_out>"},
     .meanings = {{{.id = "merge-incomplete",
                    .rule = &kDiffersFromReference,
                    .wrong = kDisk,
                    .weight = 0.85,
                    .title = "the merged file holds the base's weights where the adapter was not "
                             "added",
                    .text = "The program could not fit the adapter's matrices to these tensors "
                            "(stacked experts in another order of axes, as a rule) and wrote the "
                            "base's values. The adapter is good: merge it with a newer version, or "
                            "with `shardwright merge BASE ADAPTER`.",
                    .decide = "Which tensors differ from the base, and which from the merge.",
                    .command = "shardwright check CHECKPOINT --against BASE/@merged=ADAPTER"}}},
     .loader = kUnsloth},
    {.id = "pooling-made-up",
     .example = "No sentence-transformers model found with name NAME. Creating a new one with mean "
                "pooling.",
     .patterns = {"no sentence-transformers model found with name <name>"},
     .meanings = {{{.id = "modules-missing",
                    .rule = &kMissingFile,
                    .wrong = kDisk,
                    .weight = 0.7,
                    .title = "the folder has no modules.json: it holds the transformer alone",
                    .text = "The program puts mean pooling behind it. If another pooling, a Dense "
                            "or a Normalize module was trained, it is not applied, and the vectors "
                            "are others. Save with SentenceTransformer.save(), or fetch "
                            "modules.json and the folders that it names (1_Pooling). A plain "
                            "encoder that was never a sentence transformer is loaded rightly.",
                    .decide = "Whether the model's own folder has a modules.json.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "sentence-transformers"},
    {.id = "config-lists",
     .example = "ValueError: `num_hidden_layers` (2) must be equal to the number of `layer_types` "
                "(3)",
     .patterns = {"(<#layers>) must be equal to the number of `layer_types` (<#entries>)",
                  "must be equal to the number of `layer_types`",
                  "class validation error for validator"},
     .meanings = {{{.id = "config-refused",
                    .rule = &kConfigAnnounces,
                    .wrong = kDisk,
                    .weight = 0.85,
                    .title = "config.json contradicts itself, and transformers refuses it",
                    .text = "transformers 5 checks a config before it looks at the weights: lists "
                            "of layers need an entry for each layer, and some values have to "
                            "divide others. An exporter that adds layers (MTP) or cuts some off "
                            "has to set both. The weights are not in question.",
                    .decide = "The two values in config.json, and the layers in the files.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = "transformers"},
    {.id = "tied-both-absent",
     .example = "The tied weights mapping for this model specifies to tie NAME to NAME, but both "
                "are absent from the checkpoint",
     .patterns = {"tied weights mapping for this model specifies to tie <name> to"},
     .meanings = {{{.id = "renamed",
                    .rule = &kMissingKey,
                    .wrong = kDisk,
                    .weight = 0.75,
                    .title = "neither the embedding nor the head is there under the model's names",
                    .text = "The names have another prefix (language_model., a model. lost or "
                            "doubled), config.json names another class than the one that was "
                            "saved, or the file with the embedding is missing. The report after "
                            "this line lists what was found.",
                    .decide = "Which name of the checkpoint ends in embed_tokens.weight.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = "transformers"},
    {.id = "backend-missing",
     .example = "The checkpoint seems to have been quantized with `gguf`. Install `gguf` to load "
                "quantized checkpoints.",
     .patterns = {"checkpoint seems to have been quantized with <name>"},
     .meanings = {{{.id = "library-missing",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "the library that unpacks this checkpoint is not installed",
                    .text = "config.json says how the weights are packed, and the program needs "
                            "the library of that name to read them. The checkpoint is not in "
                            "question: install it, in the environment that runs.",
                    .decide = "Whether the library can be imported there.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "transformers or diffusers"},
    {.id = "other-structure",
     .example = "Target value NAME is set to <class 'dict'>, but source value is <class "
                "'torch.Tensor'>",
     .patterns = {", but source value is"},
     .meanings = {{{.id = "structure-differs",
                    .rule = &kMissingKey,
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "the state dict of the run nests otherwise than the saved one",
                    .text =
                        "Under this key the run has a dict where the save had a tensor, or the "
                        "other way round. The save was flattened (flatten_optimizer_state_dict), "
                        "or the run passes another object under the same key. Build the state "
                        "dict to load with the calls that built the saved one.",
                    .decide = "The names below this key in the checkpoint.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .loader = "torch"},
    {.id = "key-not-in-origin",
     .example = "ValueError: Transformation key \"params/a\" not found in origin tree.",
     .patterns = {"transformation key <name> not found in origin tree",
                  "<before>not found in origin tree"},
     .meanings = {{{.id = "renamed",
                    .rule = &kMissingKey,
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "the checkpoint has no such key to transform",
                    .text = "Orbax renames keys of the checkpoint by the transformations that the "
                            "call gives, and one of them names a key that was not saved: another "
                            "nesting (params/params), another name of the module, or a part that "
                            "was left out.",
                    .decide = "The keys of the checkpoint.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .loader = "Orbax"},
    {.id = "no-member",
     .example = "KeyError: Module doesn't contain member lora_a.",
     .patterns = {"module doesn't contain member <name>"},
     .meanings = {{{.id = "other-model",
                    .rule = &kUnexpectedKey,
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "the model has no module of this name",
                    .text = "MLX walks the model by the parts of the tensor's name. An adapter's "
                            "lora_a and lora_b need a model whose layers were made LoRA layers "
                            "first (load the adapter by its folder); other names are of another "
                            "model or another version of its class.",
                    .decide = "The names in the file, and whether they are an adapter's.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .loader = "MLX"},
    {.id = "no-file-of-known-name",
     .example = "RuntimeError: No suitable checkpoints found in PATH.",
     .patterns = {"no suitable checkpoints found in <name>",
                  "transformers file in the config seems to be incorrect"},
     .meanings = {{{.id = "other-format",
                    .rule = &kMissingFile,
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "no file of the names and forms that the program reads is there",
                    .text = "It looks for safetensors (and .bin, .pth or .npz where it knows "
                            "them). The weights are of another form (GGUF, DCP), a level deeper, "
                            "or under another name; or a config names a file of another form. "
                            "`shardwright convert CHECKPOINT --to safetensors --out NEW` writes "
                            "what most programs read.",
                    .decide = "What the tool takes the folder for.",
                    .command = "shardwright info CHECKPOINT"}}}},
};

}  // namespace

std::span<const MessageKind> framework_messages() {
  return kFrameworkMessages;
}

}  // namespace shw
