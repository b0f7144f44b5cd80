// Messages of serving and conversion programs: vLLM, SGLang, llama.cpp, MLX. They look up the
// checkpoint's tensors in their model, so a missing name is missing in the model, not in the
// checkpoint.
#include "core/explain/message_kinds.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::string_view kVllm = "vLLM or SGLang", kLlama = "llama.cpp", kMlx = "MLX";

constexpr Interpretation kOtherConfig = {
    .id = "config-disagrees",
    .rule = &kShapeMismatch,
    .wrong = kDisk,
    .weight = 0.45,
    .title = "config.json and the weights are of two different models",
    .text =
        "The server builds its model from config.json and copies the tensors in. A size, a "
        "number of heads or the vocabulary in config.json is not that of the tensors: the "
        "config was copied from another model, or the vocabulary was resized after it was "
        "written.",
    .decide = "Which tensor the traceback was loading, and its shape against config.json."};

constexpr Interpretation kPackedWeights = {
    .id = "quantised",
    .wrong = kLoader,
    .weight = 0.4,
    .title = "the weights are quantised in another way than the server was told",
    .text =
        "4-bit and 8-bit weights are packed, so their shapes are not the model's. The server "
        "takes the scheme from quantization_config in config.json or from --quantization: if "
        "it is missing there, or names another scheme, shapes and scales do not fit.",
    .decide = "quantization_config in config.json against the scales and dtypes in the files.",
    .command = "shardwright ls CHECKPOINT"};

constexpr Interpretation kCutOverTp = {
    .id = "tensor-parallel",
    .wrong = kLoader,
    .weight = 0.3,
    .title = "the server cuts the tensor over tensor-parallel ranks and the cut does not fit",
    .text =
        "Each rank takes its part of a tensor. Fewer key-value heads than ranks, a size that "
        "the rank count or the quantisation block does not divide, or a tensor that is one "
        "rank's part already give this. Try --tensor-parallel-size 1: if that loads, the "
        "checkpoint is good.",
    .decide = "Whether it loads with one rank.",
    .command = "shardwright check CHECKPOINT"};

constexpr Interpretation kWrongGgufModel = {
    .id = "config-disagrees",
    .rule = &kShapeMismatch,
    .wrong = kDisk,
    .weight = 0.5,
    .title = "the converter wrote other hyperparameters than the tensors have",
    .text =
        "llama.cpp computes the expected shape from the metadata in the GGUF file "
        "(embedding_length, head_count_kv, vocabulary). config.json was of another model when "
        "the file was converted, or the vocabulary was resized after it.",
    .decide = "The two shapes: which axis differs, and which key of config.json sets it.",
    .command = "shardwright info CHECKPOINT"};

constexpr Interpretation kMlxConfig = {
    .id = "config-disagrees",
    .rule = &kConfigShape,
    .wrong = kDisk,
    .weight = 0.4,
    .title = "config.json asks for another model, or the weights were not converted to MLX",
    .text =
        "MLX builds the model from config.json. Convolutions have their axes in another order "
        "in MLX than in torch, and quantised weights are packed: a folder that was not "
        "converted, was converted twice, or has other bits and group_size in its config, does "
        "not fit.",
    .decide = "Whether the header says format mlx, and quantization in config.json.",
    .command = "shardwright info CHECKPOINT"};

constexpr Interpretation kOlderLlama = {
    .id = "older-program",
    .wrong = kLoader,
    .weight = 0.4,
    .title = "this build of llama.cpp is older than the file, or the converter was",
    .text =
        "Tensors were added or fused for this architecture (rope_freqs, output, fused experts) "
        "and one of the two programs does not know of it. Update llama.cpp and convert again.",
    .decide = "The build of llama.cpp that runs and the one that converted.",
    .command = "shardwright info CHECKPOINT"};

constexpr Interpretation kBlocksCounted = {
    .id = "gguf-keys",
    .rule = &kGgufKeys,
    .wrong = kDisk,
    .weight = 0.55,
    .title = "the header of the GGUF file announces what is not in it",
    .text =
        "llama.cpp asks for the tensors of every block up to block_count. A converter that counts "
        "layers for multi-token prediction (MTP, nextn) and leaves out their tensors, or a merge "
        "that lost a tensor, writes such a file.",
    .decide = "Whether the block of the tensor is the first one behind those that are there.",
    .command = "shardwright check CHECKPOINT"};

// The first tensor of a block that llama.cpp asks for: all of the block is absent.
bool begins_a_block(const ErrorMessage& message) {
  return message.name.starts_with("blk.") && message.name.ends_with(".attn_norm.weight");
}

constexpr MessageKind kServingMessages[] = {
    {.id = kShapes,
     .example = "NAME shape mismatch between model and checkpoint: torch.Size([1600, 6144]) != "
                "torch.Size([1792, 6144])",
     .patterns = {"<before>shape mismatch between model and checkpoint: <current> != <saved>",
                  "parameter has <current>, checkpoint has <saved>",
                  "attempted to load weight <saved>~into parameter <current>",
                  "parameter shape <current>~loaded weight shape <saved>",
                  "param shape <current>~loaded shape <saved>",
                  "param.shape=<current>~loaded_weight.shape=<saved>",
                  "param_data.shape=<current>~loaded_weight.shape=<saved>"},
     .meanings = {{kOtherConfig, kPackedWeights}},
     .loader = kVllm},
    {.id = "weight-shape-assert",
     .example = "assert param_data.shape == loaded_weight.shape",
     .patterns = {"param_data.shape == loaded_weight.shape",
                  "self.data.shape == loaded_weight.shape", "param.size() == loaded_weight.size()",
                  "param.data.shape == loaded_weight.shape", "param.shape == loaded_weight.shape",
                  "loaded_weight.shape[output_dim] == self.org_vocab_size",
                  "loaded_weight.shape[parallel_dim] == self.num_embeddings",
                  "expert_data.shape == loaded_weight.shape"},
     .meanings = {{kOtherConfig, kPackedWeights, kCutOverTp}},
     .loader = kVllm},
    {.id = "not-in-served-model",
     .example = "ValueError: There is no module or parameter named 'NAME' in LlamaForCausalLM",
     .patterns = {"there is no module or parameter named <name>",
                  "parameter <name> not found in params_dict"},
     .meanings = {{{.id = "renamed",
                    .rule = &kUnexpectedKey,
                    .wrong = kDisk,
                    .weight = 0.5,
                    .title = "the checkpoint has a tensor that the served model does not have",
                    .text = "The name has a prefix that this architecture lacks or lacks one that "
                            "it has (base_model.model., model., language_model., _orig_mod.), or "
                            "the architecture in config.json is another model's.",
                    .decide = "The names in the checkpoint against the architecture in "
                              "config.json.",
                    .command = "shardwright check CHECKPOINT"},
                   kPackedWeights}},
     .loader = kVllm},
    {.id = kMissingKeyForm,
     .example = "ValueError: Following weights were not initialized from checkpoint: {'NAME'}",
     .patterns = {"weights were not initialized from checkpoint: <names>",
                  "weights are not initialized from checkpoints: <names>",
                  "<before>not initialized from checkpoint"},
     .loader = kVllm},
    {.id = "no-mtp-weights",
     .example = "ValueError: MTP speculative decoding layer 78 weights missing from checkpoint",
     .patterns = {"mtp speculative decoding layer <#layer> weights missing from checkpoint"},
     .meanings = {{{.id = "mtp-lost",
                    .rule = &kConfigAnnounces,
                    .wrong = kDisk,
                    .weight = 0.7,
                    .title = "the layers for multi-token prediction were not saved",
                    .text = "config.json announces them (num_nextn_predict_layers), and many "
                            "exports and quantisers leave their tensors out. The model itself is "
                            "whole: serve it without speculative decoding, or take the layers "
                            "from the original.",
                    .decide = "Whether the checkpoint has names of that layer.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = kVllm},
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
    {.id = "no-weights-file",
     .example = "RuntimeError: Cannot find any model weights with `FOLDER`",
     .patterns = {"cannot find any model weights with <name>", "no safetensors found in <name>",
                  "no safetensors weights found in <name>", "[load_safetensors] failed to open",
                  "no checkpoint found at <name>", "directory does not contain checkpoint"},
     .meanings = {{{.id = "other-format",
                    .wrong = kLoader,
                    .weight = 0.55,
                    .title = "the folder holds no weights in a form that the program reads",
                    .text = "It looks for *.safetensors, *.bin or *.pt beside config.json. A "
                            "training checkpoint (DCP, DeepSpeed, Megatron) has to be converted "
                            "first; in a folder that a trainer wrote the weights may be one level "
                            "deeper.",
                    .decide = "What the tool takes the folder for.",
                    .command = "shardwright info CHECKPOINT"},
                   {.rule = &kMissingFile,
                    .wrong = kDisk,
                    .weight = 0.35,
                    .title = "the weights were not downloaded or not copied",
                    .text = "config.json and the tokenizer are there and the weights are not.",
                    .decide = "Whether the weights are where the checkpoint was written."}}}},
    {.id = "heads-over-ranks",
     .example = "Total number of attention heads (28) must be divisible by tensor parallel size "
                "(8).",
     .patterns = {"number of attention heads (<#heads>) must be divisible by tensor parallel size "
                  "(<#ranks>)",
                  "is not divisible by weight quantization block",
                  "input size is not aligned with the quantized weight shape",
                  "output size is not aligned with the quantized weight shape",
                  "is not divisible by min_thread_"},
     .meanings = {{{.id = "tensor-parallel",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "the size cannot be cut over this many tensor-parallel ranks",
                    .text = "A number of heads, rows or quantisation blocks does not divide by the "
                            "tensor-parallel size. The checkpoint is good. Use a smaller "
                            "tensor-parallel size that divides it.",
                    .decide = "The two numbers in the message.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kVllm},
    {.id = "quantisation-method",
     .example = "Quantization method specified in the model config (fp8) does not match the "
                "quantization method specified in the `quantization` argument (awq).",
     .patterns = {"quantization method specified in the model config",
                  "unknown quantization method: <name>", "unknown quantization type, got <name>",
                  "is not supported for quantization method", "cannot find the config file for",
                  "unsupported quantization"},
     .meanings = {{{.id = "quantised",
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "config.json and the program name two different quantisations",
                    .text = "quantization_config in config.json says how the file is packed, and "
                            "the program was told otherwise or does not know that scheme. Leave "
                            "the option away, or use a program that has the scheme.",
                    .decide = "quantization_config.quant_method in config.json against the scales "
                              "in the files.",
                    .command = "shardwright check CHECKPOINT"}}}},
    {.id = "quantised-state-missing",
     .example =
         "ValueError: Supplied state dict for layers.0 does not contain `bitsandbytes__*` and "
         "possibly other `quantized_stats` components.",
     .patterns = {"supplied state dict for <name>~does not contain `bitsandbytes__",
                  "quantization state not initialized",
                  "quantization config from the arguments has no `quant_method` attribute",
                  "invalid torchao safetensors metadata",
                  "blocks.shape=<saved>~scales.shape=<current>",
                  "must be divisible by <#bytes> to view"},
     .meanings = {{{.id = "quantised",
                    .rule = &kMissingKey,
                    .wrong = kDisk,
                    .weight = 0.65,
                    .title = "a quantised weight has no scale or state beside it",
                    .text = "The weight is packed, and what decodes it (absmax, quant_state, "
                            "scales, zero points, the entry in the header or in config.json) was "
                            "not saved with it, or was saved under another name. Save with the "
                            "library that quantised, or load a copy in full precision.",
                    .decide = "Whether every packed weight has its companions.",
                    .command = "shardwright check CHECKPOINT"}}}},
    {.id = "lora-not-supported",
     .example = "ValueError: NAME is unsupported LoRA weight",
     .patterns = {"<before>is unsupported lora weight",
                  "expected target modules in~but received <names>",
                  "lora rank <#rank> is greater than max_lora_rank <#most>"},
     .meanings = {{{.id = "adapter",
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "the server does not take this part of the adapter",
                    .text = "Servers take low-rank factors of linear layers up to a rank. Trained "
                            "embeddings (modules_to_save), a rank above --max-lora-rank, names of "
                            "another base model or an adapter of another kind are refused. Merge "
                            "the adapter into its base, or raise the limit.",
                    .decide = "r and target_modules in adapter_config.json, and the names in the "
                              "adapter.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .loader = kVllm},
    {.id = "unknown-architecture",
     .example = "unknown model architecture: 'NAME'",
     .patterns = {"unknown model architecture: <name>",
                  "model architectures <names> are not "
                  "supported",
                  "model architectures <names> failed to be inspected",
                  "model type <name> not supported", "architecture <name> not supported",
                  "does not recognize this architecture", "model type <name> is not supported"},
     .meanings = {{{.id = "older-program",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "the program does not know this kind of model",
                    .text = "config.json (or general.architecture in a GGUF file) names an "
                            "architecture that this version cannot build. The tensors are not in "
                            "question. Update the program, or use one that has the model.",
                    .decide = "architectures and model_type in config.json; the program's version.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = kShapes,
     .example = "check_tensor_dims: tensor 'NAME' has wrong shape; expected 4096, 32001, got 4096, "
                "32000, 1, 1",
     .patterns = {"tensor <name> has wrong shape; expected <ggml_current>, got <ggml_saved>"},
     .meanings = {{kWrongGgufModel, kOlderLlama}},
     .loader = kLlama},
    {.id = "gguf-no-block",
     .example = "error loading model: missing tensor 'blk.32.attn_norm.weight'",
     .patterns = {"missing tensor <name>", "create_tensor: tensor <name> not found",
                  "check_tensor_dims: tensor <name> not found"},
     .meanings = {{kBlocksCounted, kOlderLlama}},
     .accepts = begins_a_block,
     .loader = kLlama},
    {.id = "gguf-no-tensor",
     .example = "error loading model: missing tensor 'token_embd.weight'",
     .patterns = {"missing tensor <name>", "create_tensor: tensor <name> not found",
                  "check_tensor_dims: tensor <name> not found"},
     .meanings = {{{.id = "config-disagrees",
                    .rule = &kMissingKey,
                    .wrong = kDisk,
                    .weight = 0.45,
                    .title = "the GGUF file lacks a tensor that its architecture needs",
                    .text = "The file was converted from an adapter, from a model whose names have "
                            "a prefix, or from part of the shards. It may also be another kind of "
                            "GGUF file: an adapter, a vision projector or an imatrix.",
                    .decide = "The names in the file, and general.architecture.",
                    .command = "shardwright ls CHECKPOINT"},
                   kOlderLlama}},
     .loader = kLlama},
    {.id = "gguf-tensor-count",
     .example = "done_getting_tensors: wrong number of tensors; expected 292, got 291",
     .patterns = {"wrong number of tensors; expected <#expected_tensors>, got <#found_tensors>"},
     .meanings =
         {{kOlderLlama,
           {.id = "config-disagrees",
            .rule = &kMissingKey,
            .wrong = kDisk,
            .weight = 0.35,
            .title = "the file holds tensors that the program did not ask for, or lacks one",
            .text = "\"expected\" is what the file holds, \"got\" is what the program asked "
                    "for. A tensor that the program does not use (rope_freqs, a bias, an "
                    "output layer of a tied model) makes the two differ.",
            .decide = "The names in the file: which one has no place in the model.",
            .command = "shardwright ls CHECKPOINT"}}},
     .loader = kLlama},
    {.id = "gguf-cut",
     .example =
         "tensor 'NAME' data is not within the file bounds, model is corrupted or incomplete",
     .patterns = {"tensor <name> data is not within the file bounds",
                  "data is not within the file bounds", "failed to read tensor info",
                  "failed to read key-value pairs", "failed to read the magic",
                  "read error: unexpectedly reached end of file"},
     .meanings = {{{.rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.85,
                    .title = "the GGUF file is cut off",
                    .text = "The header says that a tensor ends beyond the end of the file: a "
                            "download, a copy or a conversion that stopped, or one part of a file "
                            "in several parts.",
                    .decide = "The size of the file where it came from."}}},
     .loader = kLlama},
    {.id = "gguf-header",
     .example = "key not found in model: llama.context_length",
     .patterns = {"key not found in model: <name>", "has invalid ggml type <#type>",
                  "has offset <#found_offset>, expected <#expected_offset>",
                  "error loading model hyperparameters", "error loading model vocabulary",
                  "not a multiple of block size", "wrong array length", "duplicate tensor name"},
     .meanings = {{kOlderLlama,
                   {.rule = &kBadRecord,
                    .wrong = kDisk,
                    .weight = 0.35,
                    .title = "the header of the GGUF file contradicts itself or lacks a key",
                    .text = "The file was edited, was written by a tool with a mistake, or is not "
                            "a model (an adapter, a projector, an imatrix).",
                    .decide = "What wrote the file, and general.architecture.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = kLlama},
    {.id = "gguf-parts",
     .example = "invalid split file idx: 1 (file: FILE), model must be loaded with the first split",
     .patterns = {"illegal split file idx", "invalid split file", "failed to load gguf split",
                  "split file name: <name>", "n_split mismatch"},
     .meanings = {{{.rule = &kMissingFile,
                    .wrong = kDisk,
                    .weight = 0.6,
                    .title = "a part of a GGUF model in several files is missing or is not the "
                             "first",
                    .text = "The files are NAME-00001-of-0000N.gguf: all N lie in one folder under "
                            "these names, and the first one is given to the program.",
                    .decide = "Whether all N are there, with the names that the converter gave.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kLlama},
    {.id = "gguf-magic",
     .example = "gguf_init_from_file: invalid magic characters: 'PK', expected 'GGUF'",
     .patterns = {"invalid magic characters <name>", "invalid magic characters: <name>",
                  "invalid magic number <name>", "gguf magic invalid", "unknown (magic, version)",
                  "bad gguf magic", "magic number mismatch"},
     .meanings = {{{.id = "other-format",
                    .wrong = kDisk,
                    .weight = 0.75,
                    .title = "the file is not a GGUF file",
                    .text = "Its first four bytes are not \"GGUF\": it is a safetensors or a torch "
                            "file with another ending, a Git LFS pointer, a download page, or a "
                            "model of the older GGML form, which has to be converted anew.",
                    .decide = "The first bytes of the file: `head -c 16 FILE`.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kLlama},
    {.id = "gguf-convert",
     .example = "ValueError: Can not map tensor 'NAME'",
     .patterns = {"can not map tensor <name>", "cannot map tensor <name>",
                  "unexpected tensor name: <name>", "unprocessed experts: <names>",
                  "missing tensors: <names>", "unprocessed norms: <names>"},
     .meanings = {{{.id = "renamed",
                    .rule = &kUnexpectedKey,
                    .wrong = kDisk,
                    .weight = 0.5,
                    .title = "the converter does not know this tensor of the checkpoint",
                    .text = "Either its name has another prefix than the architecture's (a merge "
                            "or a fine-tune wrote it without model. or with base_model.model.), or "
                            "it is a scale of a quantised checkpoint (weight_scale_inv, SCB, "
                            "qweight, absmax): the converter wants full precision.",
                    .decide = "Whether all names differ or only the scales.",
                    .command = "shardwright check CHECKPOINT"},
                   {.id = "unfinished-save",
                    .rule = &kMissingKey,
                    .wrong = kDisk,
                    .weight = 0.3,
                    .title = "a shard or some experts are missing",
                    .text = "Experts are stacked when all of a layer are there. Experts that stay "
                            "over mean that others of the same layer are in no file.",
                    .decide = "Whether every file of the index is there.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = kLlama},
    {.id = kShapes,
     .example = "ValueError: Expected shape (4096, 4, 1) but received shape (4096, 1, 4) for "
                "parameter NAME",
     .patterns = {"expected shape <current> but received shape <saved> for parameter <name>",
                  "expected shape <current> but received shape <saved>"},
     .meanings = {{kMlxConfig}},
     .loader = kMlx},
    {.id = kUnexpectedKeyForm,
     .example = "ValueError: Received 4 parameters not in model: NAME, ...",
     .patterns = {"parameters not in model: <names>", "parameter not in model: <names>"},
     .loader = kMlx},
    {.id = kMissingKeyForm,
     .example = "ValueError: Missing 1 parameters: NAME",
     .patterns = {"missing <#parameters> parameters: <names>",
                  "missing <#parameters> parameter: <names>"},
     .loader = kMlx},
    {.id = "mlx-quantised",
     .example = "[quantized_matmul] The shapes of the weight and scales are incompatible",
     .patterns = {"[quantized_matmul]", "[dequantize]", "[gather_qmm]",
                  "unable to quantize model of type"},
     .meanings = {{{.id = "quantised",
                    .wrong = kDisk,
                    .weight = 0.7,
                    .title = "bits or group_size in config.json are not those of the weights",
                    .text = "MLX packs 32 / bits elements in each number and keeps scales and "
                            "biases per group. quantization in config.json names another number of "
                            "bits or another group size than the file was written with, for this "
                            "layer at least.",
                    .decide = "The shapes of weight, scales and biases of one layer.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .loader = kMlx},
};

}  // namespace

std::span<const MessageKind> serving_messages() {
  return kServingMessages;
}

}  // namespace shw
