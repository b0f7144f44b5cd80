// Messages of servers: vLLM, SGLang. They look up the checkpoint's tensors in their model, so a
// missing name is missing in the model, not in the checkpoint.
#include "core/explain/message_kinds.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::string_view kVllm = "vLLM or SGLang", kEngines = "an inference server";

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

constexpr Interpretation kNotFilled = {
    .id = "config-disagrees",
    .rule = &kMissingKey,
    .wrong = kDisk,
    .weight = 0.45,
    .title = "config.json announces tensors that the server did not find in the files",
    .text =
        "The names are the server's own, with fused layers (qkv_proj, gate_up_proj), so they need "
        "not be in the file as they stand. A file of the checkpoint is missing, the export left a "
        "part out, config.json is of another model, or the checkpoint's names have a prefix that "
        "the server does not map.",
    .decide =
        "Which part the names have in common, and whether the checkpoint has its tensors under "
        "any prefix.",
    .command = "shardwright check CHECKPOINT"};

constexpr Interpretation kScaleMissing = {
    .id = "quantised",
    .rule = &kMissingKey,
    .wrong = kDisk,
    .weight = 0.65,
    .title = "a quantised weight has no scale or state beside it",
    .text =
        "The weight is packed, and what decodes it (absmax, quant_state, "
        "scales, zero points, the entry in the header or in config.json) was "
        "not saved with it, or was saved under another name. Save with the "
        "library that quantised, or load a copy in full precision.",
    .decide = "Whether every packed weight has its companions.",
    .command = "shardwright check CHECKPOINT"};

constexpr Interpretation kUnknownModel = {
    .id = "older-program",
    .wrong = kLoader,
    .weight = 0.85,
    .title = "the program does not know this kind of model",
    .text =
        "config.json (or general.architecture in a GGUF file) names an "
        "architecture that this version cannot build. The tensors are not in "
        "question. Update the program, or use one that has the model.",
    .decide = "architectures and model_type in config.json; the program's version.",
    .command = "shardwright info CHECKPOINT"};

// True for names of a linear layer's tensors, plain or quantised.
bool names_a_weight(std::string_view name) {
  for (std::string_view one :
       {"weight", "qweight", "weight_packed", "scales", "qzeros", "weight_scale",
        "weight_scale_inv", "w13_weight", "w2_weight", "input_scale", "bias"}) {
    if (name == one) return true;
  }
  return false;
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
    {.id = "vocabulary-assert",
     .example = "AssertionError: self.org_vocab_size=128256 self.use_presharded_weights=False "
                "loaded_weight.shape[output_dim]=128264",
     .patterns = {"self.org_vocab_size=<#current>~loaded_weight.shape[output_dim]=<#saved>",
                  "loaded_weight.shape[output_dim] == self.org_vocab_size"},
     .meanings = {{{.id = "vocabulary",
                    .rule = &kConfigShape,
                    .wrong = kDisk,
                    .weight = 0.8,
                    .title = "the embedding has another number of rows than vocab_size says",
                    .text = "Tokens were added and config.json kept the old number, or the "
                            "embedding was padded by the training. Set vocab_size to the rows of "
                            "the embedding, or cut the padding off.",
                    .decide = "vocab_size in config.json against the embedding's first size.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = kVllm},
    {.id = "weight-shape-assert",
     .example = "assert param_data.shape == loaded_weight.shape",
     .patterns = {"param_data.shape == loaded_weight.shape",
                  "self.data.shape == loaded_weight.shape", "param.size() == loaded_weight.size()",
                  "param.data.shape == loaded_weight.shape", "param.shape == loaded_weight.shape",
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
     .accepts = [](const ErrorMessage& message) { return !is_scale_name(message.name); },
     .loader = kVllm},
    {.id = kMissingKeyForm,
     .example = "ValueError: Following weights were not initialized from checkpoint: {'NAME'}",
     .patterns = {"weights were not initialized from checkpoint: <names>",
                  "weights are not initialized from checkpoints: <names>",
                  "<before>not initialized from checkpoint"},
     .meanings = {{kNotFilled, kPackedWeights}},
     .loader = kVllm},
    {.id = kMissingKeyForm,
     .example = "RuntimeError: weight NAME does not exist",
     .patterns = {"error: weight <name> does not exist",
                  "required but not provided tensors: <names>",
                  "required but not provided tensors:<names>",
                  "expected but not provided tensors: <names>", "could not find <name> in model",
                  "cannot find tensor <name>", "cannotfindtensor { path: <name>"},
     .meanings = {{kNotFilled, kPackedWeights}},
     .loader = kEngines},
    {.id = kUnexpectedKeyForm,
     .example = "Provided but not expected tensors: {'NAME'}",
     .patterns = {"provided but not expected tensors: <names>",
                  "provided but not required tensors: <names>"},
     .loader = kEngines},
    {.id = "other-names",
     .example = "Provided tensor names are different from those expected by the engine.",
     .patterns = {"provided tensor names are different from those expected"},
     .meanings = {{kNotFilled, kPackedWeights}},
     .certainty = MessageCertainty::kThatItFailed,
     .loader = kEngines},
    {.id = "layer-without-data",
     .example = "ValueError: Layer NAME has no data",
     .patterns = {"layer <name> has no data"},
     .meanings = {{kNotFilled, kPackedWeights}},
     .loader = kEngines},
    {.id = "quantised-shards-differ",
     .example = "Detected some but not all shards of NAME are quantized. All shards of fused "
                "layers to have the same precision.",
     .patterns = {"detected some but not all shards of <name> are quantized",
                  "found a different quantization schemes for <name>",
                  "found different quantization schemes for <names>", "partially quantized"},
     .meanings = {{{.id = "quantised",
                    .wrong = kDisk,
                    .weight = 0.8,
                    .title = "layers that the server fuses are quantised in part",
                    .text = "Servers join q, k and v (or gate and up) into one tensor, so all of "
                            "them must be quantised alike. The quantiser left one of them out, or "
                            "modules_to_not_convert (ignore) names one of them, or names them as "
                            "another version of the model calls them.",
                    .decide = "The ignore list in quantization_config against the scales in the "
                              "files.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = kVllm},
    {.id = "layer-without-weight",
     .example = "AttributeError: 'MergedColumnParallelLinear' object has no attribute 'weight'",
     .patterns = {"linear' object has no attribute <name>",
                  "linear4bit' object has no attribute <name>",
                  "embedding' object has no attribute <name>",
                  "experts' object has no attribute <name>", "moe' object has no attribute <name>"},
     .meanings = {{{.id = "quantised",
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "the code asks a layer for a tensor that its quantisation does not "
                             "have",
                    .text = "A quantised layer holds qweight, weight_packed or w13_weight with "
                            "scales in the place of weight, and a plain layer has no scales. The "
                            "code path (a LoRA merge, MLA's absorbed weights, a fused kernel) "
                            "expects the other form. The file is not in question: use a version "
                            "or an option that knows this quantisation, or a copy in full "
                            "precision (`shardwright convert --dequantise`).",
                    .decide = "quantization_config in config.json, and the suffixes of this "
                              "layer's tensors.",
                    .command = "shardwright ls CHECKPOINT"},
                   {.id = "other-version",
                    .wrong = kLoader,
                    .weight = 0.25,
                    .title = "the library's layer has other parts than the code expects",
                    .text = "Another version of the library renamed or removed the attribute.",
                    .decide = "Versions of both libraries.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts = [](const ErrorMessage& message) { return names_a_weight(message.name); }},
    {.id = "kernel-sizes",
     .example = "Failed to find a kernel that can implement the WNA16 linear layer.",
     .patterns = {"failed to find a kernel that can implement", "`infeatures` must be divisible by",
                  "does not have a valid thread configuration", "as marlin is not supported",
                  "is not divisible by min_thread_", "oc is not multiple of cta_n",
                  "ic is not multiple of"},
     .meanings = {{{.id = "kernel-sizes",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "no kernel of this program takes a layer of these sizes",
                    .text = "Kernels for quantised layers take sizes in multiples of 64, 128 or "
                            "the group size, and tensor parallelism divides the layer first. The "
                            "checkpoint is good. Use fewer tensor-parallel ranks, or another "
                            "kernel for the same scheme (--quantization gptq or awq in the place "
                            "of marlin).",
                    .decide = "The sizes in the message times the tensor-parallel size: do they "
                              "divide without it?",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kEngines},
    {.id = "no-scheme-for-layer",
     .example = "Unable to find matching target for NAME in the compressed-tensors config.",
     .patterns = {"cannot find compressed-tensors target for prefix: <name>",
                  "unable to find matching target for <name> in the compressed-tensors"},
     .meanings = {{{.id = "quantised",
                    .wrong = kDisk,
                    .weight = 0.8,
                    .title = "quantization_config says nothing of this layer",
                    .text = "Every layer has to be under a target of a group or on the ignore "
                            "list. The name is neither: the lists were written for the names of "
                            "another version of the model (another prefix, layers not fused), or "
                            "the layer was added later.",
                    .decide = "targets and ignore in config.json against the name.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = kEngines},
    {.id = kShapes,
     .example = "LoRA buffer shape torch.Size([16, 4096]) does not match weight shape "
                "torch.Size([64, 4096]).",
     .patterns = {"lora buffer shape <current> does not match weight shape <saved>"},
     .meanings = {{{.id = "adapter",
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "the adapter's factor does not fit the buffer that the server made",
                    .text = "The buffer has the rank (--max-lora-rank) and the sizes of the served "
                            "model over its tensor-parallel ranks. The adapter has another rank "
                            "than the others, or was trained on another base.",
                    .decide = "r in adapter_config.json against the server's option.",
                    .command = "shardwright ls CHECKPOINT lora_"}}},
     .loader = kVllm},
    {.id = kShapes,
     .example = "The value updated is not the same shape as the original. Updated: (6144, 4096), "
                "original: (3072, 4096)",
     .patterns = {"not the same shape as the original. updated: <saved>, original: <current>"},
     .meanings = {{kOtherConfig, kCutOverTp}},
     .loader = kEngines},
    {.id = "adapter-not-supported",
     .example = "## Error: incompatible tensor shape in FOLDER: NAME",
     .patterns = {"error: incompatible tensor shape in", "error: unsupported layer in",
                  "error: unsupported bias target"},
     .meanings = {{{.id = "adapter",
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "the adapter does not fit the model that is served",
                    .text = "A factor is for a layer that this model does not have, or of another "
                            "size: it was trained on another base, or adapts layers (embeddings, "
                            "the head, experts) that the program does not adapt.",
                    .decide = "base_model_name_or_path and target_modules in adapter_config.json.",
                    .command = "shardwright ls CHECKPOINT lora_"}}},
     .loader = kEngines},
    {.id = "not-quantised",
     .example = "Cannot load `gptq` weight, make sure the model is already quantized",
     .patterns = {"make sure the model is already quantized",
                  "did not found a `quantization_config` in <name>",
                  "prequantized weight. expected", "model does not appear to be quantized",
                  "does not have compressed-tensors configuration",
                  "model quantization was not finished", "does not contain a quantization config"},
     .meanings = {{{.id = "quantised",
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "the program was told of a quantisation that the file does not have",
                    .text = "The option or quantization_config names a scheme, and the tensors of "
                            "that scheme (qweight, weight_packed, scales) are not there, or are "
                            "of another dtype. The model is in full precision, quantised in "
                            "another way, or its config was copied from a quantised one. Leave "
                            "the option away, or take the quantised checkpoint.",
                    .decide = "The dtypes and suffixes in the files against quantization_config.",
                    .command = "shardwright check CHECKPOINT"}}}},
    {.id = "quantisation-unsupported",
     .example = "Quant method is not yet supported: 'bitsandbytes'",
     .patterns = {"quant method is not yet supported: <name>",
                  "quantization with tp or pp is not supported", "base model should be a 16bit",
                  "unsupported gguf quantization type",
                  "quantization method <name> is not supported"},
     .meanings = {{{.id = "quantised",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "this program does not take a checkpoint in this quantisation",
                    .text = "The file is not damaged. Take the original in 16 bits, or decode it "
                            "first: `shardwright convert --dequantise` writes a copy in full "
                            "precision where it knows the scheme.",
                    .decide = "quant_method in config.json.",
                    .command = "shardwright info CHECKPOINT"}}}},
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
    {.id = "no-weights-file",
     .example = "RuntimeError: Cannot find any model weights with `FOLDER`",
     .patterns = {"cannot find any model weights with <name>", "no safetensors found in <name>",
                  "no .safetensors files found in <name>", "no safetensors weights found in <name>",
                  "[load_safetensors] failed to open", "no checkpoint found at <name>",
                  "directory does not contain checkpoint"},
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
                  "is not compatible with sharding on <#ranks> shards",
                  "assertionerror: <#heads> is not divisible by <#ranks>"},
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
     .example = "missing fp8 scale companion for tensor NAME",
     .patterns = {"missing fp8 scale companion for tensor <name>",
                  "<before>has no companion weight_scale", "missing quantization component <name>",
                  "has no `weight_scale` tensors", "has no weight_global_scale",
                  "has `weight_scale_2` but no `input_scale`"},
     .meanings = {{kScaleMissing}}},
    {.id = "quantised-state-missing",
     .example =
         "ValueError: Supplied state dict for layers.0 does not contain `bitsandbytes__*` and "
         "possibly other `quantized_stats` components.",
     .patterns = {"supplied state dict for <name>~does not contain `bitsandbytes__",
                  "quantization state not initialized", "tensor' object has no attribute '_scale'",
                  "quantization config from the arguments has no `quant_method` attribute",
                  "invalid torchao safetensors metadata",
                  "blocks.shape=<saved>~scales.shape=<current>",
                  "must be divisible by <#bytes> to view"},
     .meanings = {{kScaleMissing}}},
    {.id = "lora-not-supported",
     .example = "ValueError: NAME is unsupported LoRA weight",
     .patterns = {"<before>is unsupported lora weight",
                  "expected target modules in~but received <names>",
                  "lora rank <#rank> is greater than max_lora_rank <#most>",
                  "have rank <#rank>, but max_lora_rank is <#most>"},
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
     .example = "ERROR:hf-to-gguf:Model NAME is not supported",
     .patterns = {"hf-to-gguf:model <name> is not supported", "<before>has no vllm implementation",
                  "<before>has no sglang implementation"},
     .meanings = {{kUnknownModel}}},
    {.id = "unknown-architecture",
     .example = "unknown model architecture: 'NAME'",
     .patterns = {"unknown model architecture: <name>",
                  "model architectures <names>~are not "
                  "supported",
                  "model architectures <names>~failed to be inspected",
                  "model type <name> not supported", "architecture <name> not supported",
                  "does not recognize this architecture", "model type <name> is not supported",
                  "unsupported architecture <name>"},
     .meanings = {{kUnknownModel}}},
};

}  // namespace

std::span<const MessageKind> serving_messages() {
  return kServingMessages;
}

}  // namespace shw
