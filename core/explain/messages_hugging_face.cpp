// Messages of Hugging Face's libraries (transformers, peft, accelerate, the hub) and of
// mergekit.
#include "core/explain/message_kinds.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::string_view kTransformers = "transformers", kPeft = "peft",
                           kAccelerate = "accelerate", kMergekit = "mergekit";

constexpr Interpretation kAdapterOfOtherBase = {
    .id = "adapter",
    .rule = &kMissingKey,
    .wrong = kLoader,
    .weight = 0.5,
    .title = "the adapter's names do not fit the model it is put on",
    .text =
        "peft looks for base_model.model. + the module's name. The base is another model or "
        "class, it is wrapped (torch.compile, DDP), or a version of transformers nests its "
        "modules otherwise than the one that trained. The factors that are not found stay at "
        "their start, so the adapter does nothing.",
    .decide = "One name of the adapter against the base model's names.",
    .command = "shardwright check CHECKPOINT --against BASE"};
constexpr Interpretation kAdapterEmpty = {
    .id = "adapter-incomplete",
    .rule = &kMissingKey,
    .wrong = kDisk,
    .weight = 0.35,
    .title = "the adapter file lacks factors, or holds empty ones",
    .text =
        "Under ZeRO-3 or FSDP the adapter was saved without a gather: tensors are missing, of "
        "shape [0], or one rank's part.",
    .decide = "The shapes in adapter_model.safetensors.",
    .command = "shardwright ls CHECKPOINT"};
constexpr Interpretation kOtherFolder = {
    .id = "other-format",
    .wrong = kLoader,
    .weight = 0.5,
    .title = "the folder is not what the loader expects",
    .text =
        "A step folder of Trainer, a folder of FSDP shards (pytorch_model_fsdp_0), of "
        "DeepSpeed (global_stepN) or of an adapter alone has no model file at its top. The "
        "weights may be one level deeper, or have to be converted.",
    .decide = "What the tool takes the folder for.",
    .command = "shardwright info CHECKPOINT"};
constexpr Interpretation kUnfinishedExport = {
    .id = "unfinished-save",
    .rule = &kMissingFile,
    .wrong = kDisk,
    .weight = 0.4,
    .title = "the save or the download did not end",
    .text = "Configuration files are written before the weights and the index.",
    .decide = "Whether the files are where the checkpoint was written; an earlier step.",
    .command = "shardwright check CHECKPOINT"};

constexpr MessageKind kHuggingFaceMessages[] = {
    {.id = "config-attribute",
     .example = "AttributeError: 'LlamaConfig' object has no attribute 'rope_parameters'",
     .patterns = {"config' object has no attribute <name>"},
     .meanings = {{{.id = "older-library",
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "the code and the config class are of two versions of transformers",
                    .text = "The code asks for a key under a name that this version's config does "
                            "not have: version 5 renamed some (rope_parameters, dtype). Install "
                            "the version that the program asks for. No weight was read.",
                    .decide = "transformers_version in config.json against the version here.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "no-usable-checkpoint",
     .example = "ValueError: Can't find a valid checkpoint at FOLDER",
     .patterns = {"can't find a valid checkpoint at <name>",
                  "no valid checkpoint found in output directory (<name>",
                  "neither a state dict nor checkpoint files were found",
                  "failed to resume from checkpoint <name>",
                  "is not a folder containing a `.index.json` file",
                  "can't find a checkpoint index",
                  "`checkpoint` should be the path to a file containing a whole state dict"},
     .meanings = {{kOtherFolder, kUnfinishedExport}}},
    {.id = "device-map",
     .example = "ValueError: NAME doesn't have any device set.",
     .patterns = {"<before>doesn't have any device set", "<before>does not have any device set"},
     .meanings = {{{.id = "device-map",
                    .wrong = kLoader,
                    .weight = 0.6,
                    .title = "the device map names no device for this tensor",
                    .text = "device_map has to name every module of the model, and the name in the "
                            "checkpoint is not under any of them: the map was written for another "
                            "model, or by hand with a module left out. device_map=\"auto\" makes "
                            "one that is whole.",
                    .decide = "Which key of device_map the name begins with."},
                   {.id = "renamed",
                    .rule = &kUnexpectedKey,
                    .wrong = kDisk,
                    .weight = 0.35,
                    .title = "the checkpoint's name is not one of the model's",
                    .text = "It has a wrapper's prefix, or lacks one, so that no module of the map "
                            "is its own.",
                    .decide = "The names in the checkpoint against the model's.",
                    .command = "shardwright ls CHECKPOINT NAME"}}},
     .loader = kAccelerate},
    {.id = "several-indexes",
     .example = "FOLDER containing more than one `.index.json` file, delete the irrelevant ones.",
     .patterns = {"containing more than one `.index.json` file"},
     .meanings = {{{.id = "index-disagrees",
                    .rule = &kMissingFile,
                    .wrong = kDisk,
                    .weight = 0.9,
                    .title = "two indexes lie in one folder",
                    .text = "A second save (another format, or another number of shards) went into "
                            "the same folder. One of the indexes names files of the other save.",
                    .decide = "Which index names files that are all there.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = kAccelerate},
    {.id = "corrupted-state-dict",
     .example = "The state dictionary of the model you are trying to load is corrupted. Are you "
                "sure it was properly saved?",
     .patterns = {"state dictionary of the model you are trying to load is corrupted",
                  "neither a tensor nor a", "loading the checkpoint files into"},
     .meanings = {{{.id = "renamed",
                    .rule = &kMissingKey,
                    .wrong = kDisk,
                    .weight = 0.6,
                    .title = "no name of the checkpoint is one of the model's",
                    .text = "The names begin with a wrapper's prefix (module., _orig_mod., model.) "
                            "or the state dict was saved one level deeper, so none is found.",
                    .decide = "The first names of the checkpoint.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .loader = kTransformers},
    {.id = "weight-conversion",
     .example = "Cannot reshape tensor with shape torch.Size([4, 8]) into ...",
     .patterns = {"cannot reshape tensor with shape <saved>",
                  "failed to apply weight conversion for <name>",
                  "expected pattern <name> in collected tensors",
                  "could not revert some weight conversions", "conversion errors",
                  "expects a single tensor per key"},
     .meanings = {{{.id = "fused-experts",
                    .rule = &kConfigShape,
                    .weight = 0.6,
                    .title = "the conversion from the stored layout to the model's fails",
                    .text = "transformers 5 stacks experts and joins projections while it loads. A "
                            "tensor that it needs for that is missing, has another number of "
                            "experts or is already stacked: the checkpoint is of another version, "
                            "or experts are missing.",
                    .decide = "Whether every layer has the same experts, and transformers_version "
                              "in config.json.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = kTransformers},
    {.id = "config-without-type",
     .example = "Unrecognized model in FOLDER. Should have a `model_type` key in its config.json",
     .patterns = {"unrecognized model in <name>", "should have a `model_type` key"},
     .meanings = {{{.id = "config-disagrees",
                    .wrong = kDisk,
                    .weight = 0.7,
                    .title = "config.json does not say what kind of model it is",
                    .text = "Its model_type is missing: the folder is an adapter's, a training "
                            "checkpoint's or another library's, or config.json was cut off or "
                            "edited. The tensors are not in question.",
                    .decide = "What is in config.json, and what the tool takes the folder for.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kTransformers},
    {.id = "unknown-dtype",
     .example = "ValueError: Cannot load safetensors of unknown dtype F4",
     .patterns = {"cannot load safetensors of unknown dtype <name>", "unknown variant <name>",
                  "keyerror: 'f8_e4m3'", "keyerror: 'f8_e8m0'", "keyerror: 'f4'"},
     .meanings = {{{.id = "older-program",
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "the file has a dtype that this version cannot read",
                    .text = "Newer dtypes (F8_E4M3, F8_E8M0, F4) need a newer torch and "
                            "safetensors than this program has. The bytes are sound.",
                    .decide = "The dtypes in the file, and the versions here.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "older-here",
     .example = "AttributeError: module 'torch' has no attribute 'float8_e8m0fnu'",
     .patterns = {"module 'torch' has no attribute <name>",
                  "unsupported pickle protocol: <#protocol>", "cannot import name <name> from"},
     .meanings = {{{.id = "older-program",
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "the program that loads is of another version than the one that saved",
                    .text = "A dtype, an option or a class is unknown here. The tensors are sound: "
                            "use the versions of the save.",
                    .decide = "Versions of both runs.",
                    .command = "shardwright info CHECKPOINT"}}},
     .certainty = MessageCertainty::kThatItFailed},
    {.id = "no-metadata-in-header",
     .example =
         "AttributeError: 'NoneType' object has no attribute 'get' (metadata.get(\"format\"))",
     .patterns = {"metadata.get(\"format\")~'nonetype' object has no attribute 'get'",
                  "'nonetype' object has no attribute 'get'", "metadata[\"format\"]",
                  "keyerror: 'format'"},
     .meanings = {{{.id = "portability",
                    .rule = &kPortability,
                    .wrong = kDisk,
                    .weight = 0.6,
                    .title = "the safetensors header has no {\"format\": \"pt\"}",
                    .text = "Older versions of transformers ask the header for which framework the "
                            "file is. Files that were saved without metadata have none. The "
                            "tensors are sound; `shardwright convert` writes the entry.",
                    .decide = "Whether the traceback goes through load_state_dict of "
                              "transformers."}}},
     .loader = kTransformers},
    {.id = "is-a-folder",
     .example = "IsADirectoryError: [Errno 21] Is a directory: 'FOLDER'",
     .patterns = {"is a directory: <name>", "no such device (os error 19)"},
     .meanings = {{{.id = "wrong-path",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "the loader was given a folder where it expects a file",
                    .text = "The checkpoint is in several files: a loader that takes the folder "
                            "(from_pretrained, dcp.load) is needed, or the path of one file.",
                    .decide = "What is in the folder.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "adapter-config",
     .example = "ValueError: Can't find 'adapter_config.json' at 'FOLDER'",
     .patterns = {"can't find 'adapter_config.json' at <name>", "can't find weights for <name>",
                  "missing required keys: <names>"},
     .meanings = {{{.id = "wrong-path",
                    .wrong = kLoader,
                    .weight = 0.5,
                    .title = "the folder is not that of an adapter",
                    .text = "It is the folder above (checkpoint-N or a name of the adapter is "
                            "below), or a merged model, which is loaded with from_pretrained.",
                    .decide = "What the tool takes the folder for.",
                    .command = "shardwright info CHECKPOINT"},
                   kUnfinishedExport}},
     .loader = kPeft},
    {.id = "adapter-options",
     .example = "TypeError: LoraConfig.__init__() got an unexpected keyword argument 'NAME'",
     .patterns = {"config.__init__() got an unexpected keyword argument <name>"},
     .meanings = {{{.id = "older-program",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "the configuration was written by a newer version of the library",
                    .text = "A key of adapter_config.json (or config.json) is unknown to the "
                            "version that loads. The weights are sound: update the library, or "
                            "delete the key if it has its default value.",
                    .decide = "Versions of both runs.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kPeft},
    {.id = "adapter-targets",
     .example = "ValueError: Target modules {'q_proj'} not found in the base model.",
     .patterns = {"target modules <names>~not found in the base model",
                  "no adapter layers found in the model",
                  "found missing adapter keys while loading the checkpoint: <names>",
                  "found unexpected adapter keys while loading the checkpoint: <names>",
                  "led to missing keys in the model: <names>",
                  "led to unexpected keys not found in the model: <names>",
                  "led to unexpected keys not found in the model:"},
     .meanings = {{kAdapterOfOtherBase, kAdapterEmpty}},
     .loader = kPeft},
    {.id = "fsdp-names",
     .example = "KeyError: Parameter 'NAME' found in sharded model state dict but missing from "
                "full state dict.",
     .patterns = {"parameter <name> found in sharded model state dict but missing from full",
                  "parameters missing after fsdp2 wrapping: <name>", "fsdp2 mapping failed",
                  "couldn't be switched to its sharded version",
                  "cover parameters that the checkpoint does not contain: <name>",
                  "covers parameters that the checkpoint does not contain: <name>"},
     .meanings = {{{.id = "tied",
                    .rule = &kTiedWeights,
                    .wrong = kLoader,
                    .weight = 0.5,
                    .title = "a tied weight or a wrapper makes the two lists of names differ",
                    .text = "The whole state dict keeps one name of two tied tensors, and wrappers "
                            "(activation checkpointing, torch.compile) put a prefix into the "
                            "other. Set tie_word_embeddings as the checkpoint has it, and load "
                            "before the model is wrapped.",
                    .decide = "Whether the name is lm_head or embed_tokens, or has a prefix.",
                    .command = "shardwright ls CHECKPOINT"},
                   {.rule = &kMissingKey,
                    .wrong = kDisk,
                    .weight = 0.35,
                    .title = "the parameter is not in the checkpoint",
                    .text = "The save lacked it, or stored it under another name.",
                    .decide = "Whether a name ends alike.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .loader = kAccelerate},
    {.id = "merge-shapes",
     .example = "RuntimeError: Tensor size mismatch for NAME, sizes: [torch.Size([8192, 24576]), "
                "torch.Size([8192, 28672])]",
     .patterns = {"tensor size mismatch for <name>~sizes: [<saved>, <current>",
                  "tensor size mismatch for <name>: [<saved>, <current>",
                  "tensor size mismatch for <name>"},
     .meanings = {{{.id = "merge-of-other-models",
                    .rule = &kShapeMismatch,
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "the models to merge have this tensor in different shapes",
                    .text = "Neither shape is a loader's: they are of two checkpoints of the "
                            "merge, in the order of the recipe. Equal architectures with a resized "
                            "vocabulary differ in the embedding and the output layer only "
                            "(tokenizer_source helps); any other tensor means two different "
                            "models, or one that is quantised or one rank's part.",
                    .decide = "Which tensors differ: `diff` lists all at once.",
                    .command = "shardwright diff MODEL_A MODEL_B"}}},
     .loader = kMergekit},
    {.id = "merge-missing",
     .example = "RuntimeError: Tensor NAME required but not present in model MODEL",
     .patterns = {"tensor <name> required but not present in model",
                  "missing tensor <name> in model",
                  "state dictionaries have different tensor keys: <names>"},
     .meanings = {{{.id = "renamed",
                    .rule = &kMissingKey,
                    .weight = 0.5,
                    .title = "one model of the merge does not have this tensor",
                    .text = "mergekit takes the names from config.json's architecture. The model "
                            "ties the weight, has another number of layers than the recipe asks "
                            "for, has a wrapper's prefix, or is of another architecture.",
                    .decide = "The names of the model that the message names.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .loader = kMergekit},
    {.id = "fsdp-folder",
     .example = "Checkpoint found at FOLDER is only supported when using PyTorch FSDP",
     .patterns = {"checkpoint found at <name> is only supported when using pytorch fsdp"},
     .meanings = {{{.id = "other-strategy",
                    .wrong = kLoader,
                    .weight = 0.93,
                    .title = "the step was saved as FSDP shards, and this run does not use FSDP",
                    .text = "pytorch_model_fsdp_0 holds the weights in shards. Resume with the "
                            "FSDP configuration of the save, or join them first: `accelerate "
                            "merge-weights`, or `shardwright convert`, which needs no Python. The "
                            "optimizer's shards stay with FSDP.",
                    .decide = "Whether pytorch_model_fsdp_0 is in the folder.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kTransformers},
    {.id = "not-a-path",
     .example = "Repo id must be in the form 'repo_name' or 'namespace/repo_name': 'FOLDER'",
     .patterns = {"repo id must be in the form 'repo_name' or 'namespace/repo_name': <name>",
                  "repo id must use alphanumeric chars",
                  "is not a local folder and is not a valid model identifier",
                  "<before>is neither a valid local path nor a model repo"},
     .meanings = {{{.id = "wrong-path",
                    .wrong = kLoader,
                    .weight = 0.92,
                    .title = "there is no such folder, so the path was taken for a name on the hub",
                    .text =
                        "Nothing of a checkpoint was looked at. The folder does not exist where "
                        "the program runs, or it lacks the file that makes the library take it "
                        "for a model (config.json) or an adapter (adapter_config.json): a "
                        "trainer keeps those one level deeper, in checkpoint-N.",
                    .decide = "`ls` of the path, where the program runs.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "other-framework",
     .example = "The checkpoint passed was saved with tf, we need a the pt format.",
     .patterns = {"the checkpoint passed was saved with <name>, we need"},
     .meanings = {{{.id = "other-format",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "the header says that the file is another framework's",
                    .text = "TensorFlow, Flax and MLX lay some weights out with other axes than "
                            "torch. Load with the framework that the header names and save anew.",
                    .decide = "\"format\" in the header.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kAccelerate},
    {.id = "adapter-parameters",
     .example = "The following `target_parameters` were set but no matching parameter was found",
     .patterns = {"were set but no matching parameter was found: <names>",
                  "target modules <names> not found", "adapter config has no <name>",
                  "config that is trying to be loaded is missing required keys: <names>"},
     .meanings = {{{.id = "adapter",
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "adapter_config.json does not fit the model it is put on",
                    .text = "It names modules or parameters that this class of the model does not "
                            "have (another version stacks or names experts otherwise), or lacks a "
                            "key that the library needs (peft_type): another tool wrote it.",
                    .decide = "target_modules and peft_type in adapter_config.json.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = kPeft},
    {.id = "merge-into-quantised",
     .example = "ValueError: Cannot merge LORA layers when the model is gptq quantized",
     .patterns = {"layers when the model is gptq quantized",
                  "layers when the model is loaded in 8-bit mode"},
     .meanings = {{{.id = "quantised",
                    .wrong = kLoader,
                    .weight = 0.95,
                    .title = "PEFT does not merge an adapter into a base that is quantised so",
                    .text = "Merge into the 16-bit base: `shardwright merge BASE ADAPTER --out "
                            "NEW`, then quantise the result. Or load the adapter beside the "
                            "quantised base and do not merge. Nothing is damaged.",
                    .decide = "quantization_config in the base's config.json.",
                    .command = "shardwright merge BASE ADAPTER --out NEW"}}},
     .loader = kPeft},
    {.id = "train-quantised",
     .example = "ValueError: You can't train a model that has been loaded in 8-bit or 4-bit "
                "precision on a different device than the one you're training on.",
     .patterns = {"you can't train a model that has been loaded in 8-bit or 4-bit precision",
                  "you can't train a model that has been loaded with `device_map='auto'`"},
     .meanings = {{{.id = "other-device",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "the model lies on another GPU than the process that trains",
                    .text = "device_map=\"auto\" spreads it over all GPUs, and each process wants "
                            "it on its own. Load it with device_map={\"\": "
                            "torch.cuda.current_device()}, or start one process. The checkpoint is "
                            "not in question.",
                    .decide = "device_map in from_pretrained, and the number of processes.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kAccelerate},
    {.id = "no-offload-folder",
     .example = "At least one of the model submodule will be offloaded to disk, please pass along "
                "an `offload_folder`.",
     .patterns = {"offloaded to disk, please pass along an `offload_folder`",
                  "we need an `offload_dir` to dispatch this model"},
     .meanings = {{{.id = "out-of-memory",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "the model does not fit into GPU and main memory",
                    .text = "device_map=\"auto\" wants to put the rest on disk and has no place "
                            "for it. Give offload_folder=\"offload\" (slow), more memory, or a "
                            "quantised copy. The checkpoint is not in question.",
                    .decide = "The bytes of the tensors against the free memory.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kAccelerate},
    {.id = "parameter-not-in-module",
     .example = "ValueError: Linear() does not have a parameter or a buffer named weight_scale.",
     .patterns = {"does not have a parameter or a buffer named <name>"},
     .meanings = {{{.id = "renamed",
                    .rule = &kUnexpectedKey,
                    .wrong = kLoader,
                    .weight = 0.65,
                    .title = "the checkpoint has a tensor that this module of the model lacks",
                    .text = "The class that loads is not the one that saved: another quantisation "
                            "(scales, absmax, qweight), a bias that one side has, or an adapter "
                            "in the names. accelerate names only the end of the tensor.",
                    .decide = "The tensors of one layer in the file against the class.",
                    .command = "shardwright ls CHECKPOINT NAME"}}},
     .loader = kAccelerate},
    {.id = "tokenizer-newer",
     .example = "Exception: data did not match any variant of untagged enum ModelWrapper at line "
                "1251003 column 3",
     .patterns = {"data did not match any variant of untagged enum <name>"},
     .meanings = {{{.id = "tokenizer",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "tokenizer.json is of a later version of tokenizers than is installed",
                    .text = "The weights are not in question. tokenizers 0.20 began to write "
                            "merges as pairs, which older ones do not read. Update both: `pip "
                            "install -U tokenizers transformers`. Or take the base model's "
                            "tokenizer.json, if no tokens were added.",
                    .decide = "`pip show tokenizers` in both runs.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "tokenizers"},
    {.id = "config-not-json",
     .example = "TypeError: Object of type Int4WeightOnlyConfig is not JSON serializable",
     .patterns = {"object of type <name> is not json serializable"},
     .meanings = {{{.id = "save-refused",
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "a save stopped: its configuration holds an object that JSON cannot",
                    .text = "config.json, adapter_config.json or trainer_state.json takes numbers, "
                            "strings and lists. A dtype, a tensor or a config object was put "
                            "there: make it plain first, or update the library that put it there. "
                            "What this save left is not whole.",
                    .decide = "The attribute of the config that has this type.",
                    .command = "shardwright check CHECKPOINT"}}}},
    {.id = "library-missing",
     .example = "Failed to import transformers.models.NAME because of the following error: No "
                "module named 'flash_attn'",
     .patterns = {"(look up to see its traceback): no module named <name>",
                  "failed to import <name> because of the following error"},
     .meanings = {{{.id = "not-about-a-checkpoint",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "a library is missing here, or two do not fit each other",
                    .text = "The model's code could not be imported, so no checkpoint was opened. "
                            "Install the module that the message names, or the versions that the "
                            "model's page asks for.",
                    .decide = "The last error of the traceback.",
                    .command = "shardwright info CHECKPOINT"}}}},
};

}  // namespace

std::span<const MessageKind> hugging_face_messages() {
  return kHuggingFaceMessages;
}

}  // namespace shw
