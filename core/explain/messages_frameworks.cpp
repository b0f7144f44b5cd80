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
};

}  // namespace

std::span<const MessageKind> framework_messages() {
  return kFrameworkMessages;
}

}  // namespace shw
