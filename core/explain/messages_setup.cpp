// Messages about what surrounds a model: libraries, tokenizers, kinds of GPU, room for a cache, and
// dtypes that a trainer does not take.
#include "core/explain/message_kinds.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr MessageKind kSetupMessages[] = {
    {.id = "rope-scaling",
     .example = "ValueError: `rope_scaling` must be a dictionary with two fields, `type` and "
                "`factor`, got {...}",
     .patterns = {"`rope_scaling` must be a dictionary with", "`rope_scaling`'s type field must be",
                  "missing required keys in `rope_scaling`", "`rope_scaling`'s factor field must",
                  "missing required keys in `rope_parameters`"},
     .meanings = {{{.id = "older-library",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "config.json describes the rotary positions in a newer form than this "
                             "transformers reads",
                    .text = "Version 4.43 added rope_type (llama3, longrope), and version 5 keeps "
                            "all of it in rope_parameters. Older versions accept two keys and "
                            "refuse others. The weights are sound: update transformers, and do not "
                            "edit the factors, which change what the model answers.",
                    .decide = "transformers_version in config.json against the version here.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "transformers"},
    {.id = "config-class",
     .example = "The model class you are passing has a `config_class` attribute that is not "
                "consistent with the config class you passed",
     .patterns = {"`config_class` attribute that is not consistent with the config class"},
     .meanings = {{{.id = "other-class",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "the code that registers the model and the code of its config are two",
                    .text = "Two copies of one config class are loaded (trust_remote_code beside "
                            "the library's own, or two revisions), or the Auto class is one that "
                            "this kind of model does not have. No weight was read. Update both, or "
                            "name one revision.",
                    .decide = "The two class paths in the message, and auto_map in config.json.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "transformers"},
    {.id = "peft-layers-unknown",
     .example = "ValueError: Please specify `num_layers` in `peft_config`",
     .patterns = {"please specify `num_layers` in `peft_config`",
                  "please specify `num_attention_heads` in `peft_config`",
                  "please specify `token_dim` in `peft_config`"},
     .meanings = {{{.id = "not-about-a-checkpoint",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "peft does not find this number in the base model's config",
                    .text = "Prompt and prefix tuning need it, and the model has it under a name "
                            "of its own (in text_config, for instance). Say it in the peft config. "
                            "No weight was read.",
                    .decide = "config.json of the base model.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "peft"},
    {.id = "adapter-ranks-differ",
     .example = "ValueError: All adapters must have the same r value when using combination_type "
                "linear, ties, dare_ties or dare_linear",
     .patterns = {"all adapters must have the same r value"},
     .meanings = {{{.id = "other-rank",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "the adapters to combine have different ranks",
                    .text = "These ways of combining add the factors, and factors of different "
                            "ranks have different shapes. Each adapter is sound. "
                            "combination_type cat or svd takes any ranks.",
                    .decide = "r in each adapter_config.json.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "peft"},
    {.id = "code-in-model",
     .example = "ValueError: Requested the deserialization of a `Lambda` layer whose `function` is "
                "a Python lambda",
     .patterns = {"requested the deserialization of a"},
     .meanings = {{{.id = "unsafe-code",
                    .rule = &kUnsafePickle,
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "the model file brings code of its own, and Keras does not run it",
                    .text = "Loading it executes what its author wrote. If you trust the author, "
                            "pass safe_mode=False. Else build the model in code and take the "
                            "weights alone with load_weights. The weights are sound.",
                    .decide = "Where the file comes from.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "Keras"},
    {.id = "device-unknown",
     .example = "SafetensorError: device privateuseone:0 is invalid",
     .patterns = {"safetensorerror: device <name> is invalid"},
     .meanings = {{{.id = "older-library",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "this version of safetensors does not know the device",
                    .text = "The file was not read. Load to the CPU and move the tensors, or "
                            "update safetensors.",
                    .decide = "The device that the call asks for.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "safetensors"},
    {.id = "checkpoint-id-unset",
     .example = "AssertionError: checkpoint_id must be set before reading data",
     .patterns = {"checkpoint_id must be set before"},
     .meanings = {{{.id = "call-without-path",
                    .wrong = kLoader,
                    .weight = 0.95,
                    .title = "the reader was made without the folder",
                    .text = "Give torch.distributed.checkpoint.load a checkpoint_id, or the reader "
                            "its path. Nothing was opened.",
                    .decide = "The arguments of the call.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "torch"},
    {.id = "quantised-parameter",
     .example = "RuntimeError: Only Tensors of floating point and complex dtype can require "
                "gradients",
     .patterns = {"only tensors of floating point and complex dtype can require gradients"},
     .meanings = {{{.id = "quantised",
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "packed integer weights were taken for parameters to train",
                    .text = "The checkpoint is quantised, and the class that loads makes plain "
                            "parameters of its tensors. Load it with its own method "
                            "(quantization_config and the library for it), or take the 16-bit "
                            "model.",
                    .decide = "The dtypes in the files, and quantization_config.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "torch"},
    {.id = "quantised-stays",
     .example = "ValueError: `.to` is not supported for `4-bit` or `8-bit` bitsandbytes models.",
     .patterns = {"`.to` is not supported for `4-bit` or `8-bit`",
                  "calling `cuda()` is not supported for",
                  "you can't move a model that has some modules offloaded to cpu or disk"},
     .meanings = {{{.id = "other-device",
                    .wrong = kLoader,
                    .weight = 0.95,
                    .title = "this model stays where it was loaded",
                    .text = "Leave .to() and .cuda() out, and say device_map when you load "
                            "(device_map={\"\": 0} puts it on the first GPU). The checkpoint is "
                            "not in question.",
                    .decide = "The line of the traceback that moves the model.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "transformers"},
    {.id = "quantisation-library",
     .example = "ImportError: Loading an AWQ quantized model requires auto-awq library",
     .patterns = {"loading an awq quantized model requires",
                  "loading a gptq quantized model requires",
                  "requires the latest version of bitsandbytes",
                  "using bitsandbytes 4-bit quantization requires",
                  "using `bitsandbytes` 8-bit quantization requires",
                  "no package metadata was found for <name>"},
     .meanings = {{{.id = "not-about-a-checkpoint",
                    .wrong = kLoader,
                    .weight = 0.92,
                    .title = "the library that decodes this quantisation is not here, or too old",
                    .text = "Install or update what the message names, into the environment that "
                            "runs. If it is there, its own import failed (another CUDA, no GPU): "
                            "import it by hand and read that error.",
                    .decide = "`python -c 'import bitsandbytes'` (or awq, gptqmodel).",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "transformers"},
    {.id = "gpu-too-old",
     .example =
         "ValueError: FP8 quantized models is only supported on GPUs with compute capability "
         ">= 8.9",
     .patterns = {"only supported on gpus with compute capability",
                  "minimum capability: <#needed>. current capability: <#found>",
                  "no kernel image is available for execution on the device"},
     .meanings = {{{.id = "kernel-sizes",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "this GPU, or this build, has no kernels for the quantisation",
                    .text = "Native FP8 needs compute capability 8.9 (Ada, Hopper). The checkpoint "
                            "is good. Decode it to 16 bits (`shardwright convert CHECKPOINT --to "
                            "safetensors --dequantise --out NEW`), take another quantisation of "
                            "the model, or another GPU. \"No kernel image\" is about the build of "
                            "torch.",
                    .decide = "`nvidia-smi --query-gpu=compute_cap --format=csv`.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "cpu-build",
     .example = "AssertionError: Torch not compiled with CUDA enabled",
     .patterns = {"torch not compiled with cuda enabled", "found no nvidia driver on your system"},
     .meanings = {{{.id = "not-about-a-checkpoint",
                    .wrong = kLoader,
                    .weight = 0.95,
                    .title = "this torch cannot use a GPU here",
                    .text = "It is the build for CPUs, or the machine (or container) shows no "
                            "driver. Install the CUDA build from pytorch.org, or load on the CPU. "
                            "No checkpoint has to do with it.",
                    .decide = "`python -c 'import torch; print(torch.version.cuda)'`.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "torch"},
    {.id = "tokenizer-class",
     .example = "ValueError: Tokenizer class Qwen2Tokenizer does not exist or is not currently "
                "imported.",
     .patterns = {"tokenizer class <name> does not exist or is not currently imported"},
     .meanings = {{{.id = "tokenizer",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "this version of transformers does not know the tokenizer's class",
                    .text = "Update transformers. For a class of the model's own code pass "
                            "trust_remote_code=True after reading it. A tokenizer_config.json "
                            "that a later version wrote can name a class that older ones lack: "
                            "take the base model's file. The weights are not in question.",
                    .decide = "tokenizer_class in tokenizer_config.json.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "transformers"},
    {.id = "tokenizer-model",
     .example = "RuntimeError: Internal: could not parse ModelProto from FILE/tokenizer.model",
     .patterns = {"could not parse modelproto from <name>", "typeerror: not a string"},
     .meanings = {{{.id = "tokenizer",
                    .wrong = kDisk,
                    .weight = 0.75,
                    .title = "tokenizer.model is missing, or is not a SentencePiece file",
                    .text = "A Git LFS pointer or a failed download stands in its place, or the "
                            "model keeps its tokenizer in tokenizer.json and the slow class was "
                            "asked for (use_fast=False). Copy the file from the base model. The "
                            "weights are not in question.",
                    .decide = "Whether tokenizer.model is there, and larger than 1 KB.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "SentencePiece"},
    {.id = "tokenizer-size",
     .example = "ValueError: Vocab size mismatch (model has 32000, but tokenizer.model has 32001).",
     .patterns = {"vocab size mismatch (model has <#model_tokens>, but~has <#tokenizer_tokens>)",
                  "vocab size mismatch (model has <#model_tokens>, but",
                  "max(tokenizer.vocab.values())"},
     .meanings = {{{.id = "vocabulary",
                    .rule = &kVocabularyPadding,
                    .wrong = kDisk,
                    .weight = 0.8,
                    .title = "the tokenizer has more tokens than the embedding has rows",
                    .text = "Tokens were added to the tokenizer (a padding token, chat tokens) and "
                            "the model was not resized, or vocab_size in config.json is the old "
                            "one. If the embedding has the rows, correct vocab_size; if not, take "
                            "the added tokens out (added_tokens.json).",
                    .decide = "The rows of the embedding against the tokenizer's length.",
                    .command = "shardwright ls CHECKPOINT embed"}}},
     .loader = "llama.cpp"},
    {.id = "cache-room",
     .example = "ValueError: The model's max seq len (131072) is larger than the maximum number of "
                "tokens that can be stored in KV cache (34512).",
     .patterns = {"max seq len (<#wanted>) is larger than the maximum number of tokens that can be "
                  "stored in kv cache (<#room>)",
                  "no available memory for the cache blocks",
                  "is larger than the available kv cache memory"},
     .meanings = {{{.id = "out-of-memory",
                    .wrong = kLoader,
                    .weight = 0.95,
                    .title = "the weights are loaded, and too little GPU memory is left for the "
                             "cache",
                    .text = "The checkpoint is good. Shorten the context (--max-model-len), raise "
                            "--gpu-memory-utilization, use more GPUs, or keep the cache in FP8 "
                            "(--kv-cache-dtype fp8).",
                    .decide = "The two numbers in the message.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "vLLM or SGLang"},
    {.id = "engine-failed",
     .example = "RuntimeError: Engine core initialization failed. See root cause above.",
     .patterns = {"engine core initialization failed", "engine process failed to start"},
     .meanings = {{{.id = "details-missing",
                    .weight = 0.3,
                    .title = "the server did not start, and this line does not say why",
                    .text = "The reason stands further up, in the traceback of a worker: the first "
                            "line with ERROR. Paste that.",
                    .decide = "The first error in the log.",
                    .command = "shardwright check CHECKPOINT"}}},
     .certainty = MessageCertainty::kThatItFailed,
     .loader = "vLLM"},
    {.id = "half-gradients",
     .example = "ValueError: Attempting to unscale FP16 gradients.",
     .patterns = {"attempting to unscale fp16 gradients"},
     .meanings = {{{.id = "loaded-in-half",
                    .wrong = kLoader,
                    .weight = 0.92,
                    .title = "the parameters to train were loaded in float16",
                    .text = "Mixed precision scales gradients of float32 parameters. Load the "
                            "model in float32 or bfloat16, or cast what is trained (the adapter) "
                            "to float32 before the start. The file is good.",
                    .decide = "The dtype of the parameters with requires_grad.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "torch"},
    {.id = "flat-dtypes",
     .example = "ValueError: Must flatten tensors with uniform dtype but got torch.bfloat16 and "
                "torch.float32",
     .patterns = {"must flatten tensors with uniform dtype but got",
                  "cannot flatten integer dtype tensors"},
     .meanings = {{{.id = "mixed-dtypes",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "FSDP1 joins parameters of one dtype only, and the model has several",
                    .text = "The file is good. Load all in one dtype and cast adapters to it. With "
                            "4-bit weights set bnb_4bit_quant_storage to that dtype. FSDP2 "
                            "(fully_shard) keeps parameters apart.",
                    .decide = "The dtypes of the model's parameters before it is wrapped.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "torch"},
    {.id = "unknown-option",
     .example = "TypeError: load_model() got an unexpected keyword argument 'device'",
     .patterns = {"got an unexpected keyword argument <name>"},
     .meanings = {{{.id = "older-program",
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "two libraries here are of versions that do not fit each other",
                    .text = "One calls the other with an option that it lacks, or a config file "
                            "holds a key of a later version. Update the library of the function "
                            "that the message names. The tensors are sound.",
                    .decide = "The last two files in the traceback: who calls whom.",
                    .command = "shardwright info CHECKPOINT"}}},
     .certainty = MessageCertainty::kThatItFailed},
    {.id = "other-auto-class",
     .example = "ValueError: Unrecognized configuration class <class NAME> for this kind of "
                "AutoModel: AutoModelForCausalLM.",
     .patterns = {"unrecognized configuration class"},
     .meanings = {{{.id = "other-class",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "this Auto class does not build that kind of model",
                    .text = "The message ends with the configurations that it takes. "
                            "Vision-language models are loaded with AutoModelForImageTextToText, "
                            "encoders with AutoModel. If the right class lacks it too, update "
                            "transformers. The tensors are not in question.",
                    .decide = "architectures in config.json.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "transformers"},
    {.id = "hdf5-cannot-open",
     .example = "OSError: Unable to open file (unable to open file: name = 'model.h5', errno = 2, "
                "error message = 'No such file or directory')",
     .patterns = {"unable to open file: name = <name>"},
     .meanings = {{{.id = "wrong-path",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "there is no such HDF5 file, or it may not be read",
                    .text = "The message ends with the system's words. \"No such file\": the path "
                            "is relative to where the program was started, or the download did "
                            "not run.",
                    .decide = "`ls -l` of the path, where the program runs.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "HDF5"},
    {.id = "windows-symlinks",
     .example = "OSError: [WinError 1314] A required privilege is not held by the client",
     .patterns = {"[winerror 1314]"},
     .meanings = {{{.id = "cannot-link",
                    .wrong = kLoader,
                    .weight = 0.92,
                    .title = "Windows did not let the hub's cache make a symbolic link",
                    .text = "Turn on Developer Mode in Windows, or run once as administrator. Or "
                            "download into a plain folder: `hf download REPO --local-dir DIR`.",
                    .decide = "Whether the file is in the cache's blobs folder.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "huggingface_hub"},
    {.id = "windows-mapped",
     .example = "SafetensorError: Error while serializing: IoError(Os { code: 1224, ... })",
     .patterns = {"os { code: 1224", "os error 1224"},
     .meanings = {{{.id = "file-open",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "the save writes over a file that is still mapped",
                    .text = "Windows refuses it. Tensors that were loaded from this file, here or "
                            "in another program, still point into it. Save to another folder, or "
                            "drop them first (clone the tensors, then del and gc.collect()).",
                    .decide = "Whether the program saves where it loaded from.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = "safetensors"},
    {.id = "ranks-not-started",
     .example = "DistStoreError: Timed out after 601 seconds waiting for clients. 7/8 clients "
                "joined.",
     .patterns = {"waiting for clients. <#joined>/<#expected> clients joined"},
     .meanings = {{{.id = "rank-missing",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "not all ranks started",
                    .text = "No checkpoint was opened. A rank died before it joined (look into its "
                            "own log), a node cannot reach MASTER_ADDR:MASTER_PORT, or the number "
                            "of processes is said wrongly.",
                    .decide = "The logs of the ranks that are missing.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "torch.distributed"},
};

}  // namespace

std::span<const MessageKind> setup_messages() {
  return kSetupMessages;
}

}  // namespace shw
