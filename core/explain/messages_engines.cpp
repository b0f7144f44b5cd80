// Messages of programs with formats of their own: MLX, CTranslate2, ONNX, TensorRT-LLM.
#include <algorithm>
#include <initializer_list>

#include "core/explain/message_kinds.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::string_view kMlx = "MLX", kCtranslate = "CTranslate2", kOnnx = "ONNX Runtime";

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

constexpr Interpretation kMlxNoPlace = {
    .id = "config-disagrees",
    .rule = &kUnexpectedKey,
    .weight = 0.5,
    .title = "the checkpoint has tensors that MLX's class of this model does not",
    .text =
        "MLX picks its class by model_type and renames or drops tensors first (sanitize); these "
        "stayed over. The version of mlx-lm (or mlx-vlm) is older than the model, the class is for "
        "text alone, or the folder was converted by another version.",
    .decide = "What the names have in common, and the version of mlx-lm.",
    .command = "shardwright ls CHECKPOINT"};
constexpr Interpretation kMlxLacks = {
    .id = "config-disagrees",
    .rule = &kMissingKey,
    .weight = 0.5,
    .title = "MLX's class of this model has parameters that the checkpoint does not",
    .text =
        "A setting of config.json (or its default in this version) builds a part that the file "
        "does not have, a file of the checkpoint is missing, or quantization in config.json names "
        "layers that are not quantised.",
    .decide = "Which part the names have in common, and which setting builds it.",
    .command = "shardwright check CHECKPOINT"};

bool is_version(const ErrorMessage& message, std::initializer_list<std::int64_t> versions) {
  return !message.numbers.empty() &&
         std::find(versions.begin(), versions.end(), message.numbers[0].second) != versions.end();
}

constexpr MessageKind kEngineMessages[] = {
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
     .meanings = {{kMlxNoPlace}},
     .loader = kMlx},
    {.id = kMissingKeyForm,
     .example = "ValueError: Missing 1 parameters: NAME",
     .patterns = {"missing <#parameters> parameters: <names>",
                  "missing <#parameters> parameter: <names>", "error: missing parameters: <names>"},
     .meanings = {{kMlxLacks}},
     .loader = kMlx},
    {.id = "mlx-group-size",
     .example = "[quantize] The last dimension of the matrix needs to be divisible by the "
                "quantization group size 64.",
     .patterns = {"[quantize] the last dimension of the matrix needs to be divisible by the "
                  "quantization group size <#group>"},
     .meanings = {{{.id = "kernel-sizes",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "a layer's width does not divide by the group size",
                    .text = "MLX keeps one scale per group along the last axis. Convert with a "
                            "smaller group (--q-group-size 32), or leave that layer in 16 bits "
                            "(quant_predicate). The checkpoint is good.",
                    .decide = "The last number of the shape in the message.",
                    .command = "shardwright info CHECKPOINT"}}},
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
    // CTranslate2 parses the first four bytes as a number: "vers", "PK\3\4", "<!do", "<htm".
    {.id = "ctranslate-lfs",
     .example = "Unsupported model binary version ... but the model has binary version v1936876918",
     .patterns = {"but the model has binary version v<#version>"},
     .meanings = {{{.id = "git-lfs-pointer",
                    .wrong = kDisk,
                    .weight = 0.97,
                    .title = "model.bin is a Git LFS pointer, not the model",
                    .text = "1936876918 is the text \"vers\", with which a pointer begins: the "
                            "repository was cloned without git-lfs. Run `git lfs pull`, or "
                            "download the file itself.",
                    .decide = "The size of model.bin: a pointer has 130 bytes.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts = [](const ErrorMessage& message) { return is_version(message, {1936876918}); },
     .loader = kCtranslate},
    {.id = "ctranslate-form",
     .example = "Unsupported model binary version ... but the model has binary version v67324752",
     .patterns = {"but the model has binary version v<#version>"},
     .meanings = {{{.id = "other-format",
                    .wrong = kDisk,
                    .weight = 0.95,
                    .title = "model.bin is not CTranslate2's: its first bytes are another form's",
                    .text = "The number is the first four bytes of the file: 67324752 is \"PK\", a "
                            "zip that torch.save wrote; 1868833084 and 1836345404 are \"<!do\" "
                            "and \"<htm\", a web page. Convert the model with "
                            "ct2-transformers-converter, or download it anew.",
                    .decide = "The first bytes of the file: `head -c 16 model.bin`.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts =
         [](const ErrorMessage& message) {
           return is_version(message, {67324752, 1868833084, 1836345404});
         },
     .loader = kCtranslate},
    {.id = "ctranslate-version",
     .example = "Unsupported model binary version ... but the model has binary version v7",
     .patterns = {"but the model has binary version v<#version>"},
     .meanings = {{{.id = "older-program",
                    .wrong = kLoader,
                    .weight = 0.6,
                    .title = "the model was converted by a later CTranslate2",
                    .text = "Update CTranslate2 (or faster-whisper). A number of eight digits or "
                            "more is no version: then the file is not a model of CTranslate2.",
                    .decide = "The number: versions are small.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kCtranslate},
    {.id = "ctranslate-files",
     .example = "Unable to open file 'model.bin' in model 'FOLDER'",
     .patterns = {"unable to open file 'model.bin' in model <name>",
                  "unable to open file <name> in model"},
     .meanings = {{{.id = "other-format",
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "the folder is not a model in CTranslate2's form",
                    .text = "faster-whisper reads model.bin of CTranslate2, not safetensors or "
                            "pytorch_model.bin of transformers. Convert the model with "
                            "ct2-transformers-converter, or take a converted one. If it was "
                            "converted, the path is a level too high, or the download stopped.",
                    .decide = "Which files are in the folder.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kCtranslate},
    {.id = "onnx-data",
     .example = "Data of TensorProto ( tensor name: NAME) should be stored in FILE, but it doesn't "
                "exist",
     .patterns = {"data of tensorproto ( tensor name: <name>", "getfilelength for <name>",
                  "external data path does not exist", "external initializer: <name>",
                  "external data file <name>"},
     .meanings = {{{.rule = &kMissingFile,
                    .wrong = kDisk,
                    .weight = 0.85,
                    .title = "the file with the weights is not beside the .onnx file",
                    .text = "Models above 2 GB keep their weights in files of their own "
                            "(.onnx_data, .onnx.data), and the .onnx file names them. They have to "
                            "lie in its folder under the names that it gives: copy them too, and "
                            "do not rename one of the two alone.",
                    .decide = "Which files the .onnx file names, and whether they are there.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kOnnx},
    {.id = "onnx-version",
     .example = "Unsupported model IR version: 11, max supported IR version: 10",
     .patterns = {"unsupported model ir version: <#file_version>, max supported ir version: "
                  "<#loader_version>",
                  "opset <#file_version> is under development", "is not a registered function/op"},
     .meanings = {{{.id = "older-program",
                    .wrong = kLoader,
                    .weight = 0.93,
                    .title = "the model was exported for a later ONNX Runtime",
                    .text = "The first number is the file's, the second the highest that this "
                            "runtime reads. Update onnxruntime, or export with an older onnx. The "
                            "weights are sound.",
                    .decide = "Nothing: the message has both numbers.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kOnnx},
    {.id = "onnx-not-protobuf",
     .example = "INVALID_PROTOBUF : Load model from FILE failed:Protobuf parsing failed.",
     .patterns = {"protobuf parsing failed", "unable to parse proto from file: <name>",
                  "error parsing message with type 'onnx.modelproto'"},
     .meanings = {{{.rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.55,
                    .title = "the .onnx file is cut off, or is not an ONNX model",
                    .text = "A download that stopped, a Git LFS pointer, a web page in its place, "
                            "or a file of another form with this ending.",
                    .decide = "The size, and the first bytes: `head -c 100 FILE`.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kOnnx},
    {.id = "gguf-offsets",
     .example = "tensor 'NAME' has offset 734003200, expected 734003232",
     .patterns = {"tensor <name> has offset <#found_offset>, expected <#expected_offset>"},
     .meanings = {{{.rule = &kBadRecord,
                    .wrong = kDisk,
                    .weight = 0.55,
                    .title = "the tensors do not lie one after another as the header says",
                    .text = "The second offset is the one that types, shapes and alignment of the "
                            "tensors before it make. The file was edited or joined by a tool that "
                            "does not pad, or a tensor before it has a type of another size.",
                    .decide = "What wrote the file, and the tensor before the named one.",
                    .command = "shardwright check CHECKPOINT"},
                   {.id = "older-program",
                    .wrong = kLoader,
                    .weight = 0.35,
                    .title = "the build gives a type of the file another size",
                    .text = "Forks of llama.cpp number quantised types of their own, and types "
                            "that were removed are read otherwise. Use the build that wrote it.",
                    .decide = "The types in the file, and the build that runs.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "llama.cpp"},
    {.id = "ggml-not-all-loaded",
     .example = "ERROR not all tensors loaded from model file - expected 245, got 3",
     .patterns = {"not all tensors loaded from model file - expected <#expected>, got <#found>"},
     .meanings = {{{.rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.7,
                    .title =
                        "the model file ends before its last tensor, or was packed for another "
                        "version",
                    .text = "The first number is the tensors that this model has, the second those "
                            "that were read. A download that stopped leaves the file short: "
                            "compare its size and fetch it again. With the right size, the program "
                            "is too old for the file's quantisation.",
                    .decide = "The size of the file where it came from.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "whisper.cpp"},
    {.id = "adapter-on-server",
     .example =
         "While loading NAME, expected target modules in {'q_proj'} but received ['lm_head']",
     .patterns = {"while loading <name>, expected target modules in", "expected target modules in",
                  "verify that the loaded lora module is correct"},
     .meanings = {{{.id = "adapter",
                    .rule = &kAdapterContradicts,
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "the adapter trains modules that the server does not adapt",
                    .text = "The first list is what the server adapts in this model, the second "
                            "what the adapter has besides: the head or the embeddings, modules "
                            "under the names of another class, or with another prefix. Merge the "
                            "adapter into its base (`shardwright merge BASE ADAPTER`) and serve "
                            "that, or train without these modules.",
                    .decide = "target_modules and modules_to_save in adapter_config.json.",
                    .command = "shardwright check CHECKPOINT --against BASE"}}},
     .loader = "vLLM"},
    {.id = "no-place-in-layer",
     .example = "AttributeError: Layer NAME has no parameter 'w2_weight_scale_2' for checkpoint "
                "weight NAME",
     .patterns = {"for checkpoint weight <name>"},
     .meanings = {{{.id = "quantised",
                    .rule = &kQuantisedPairs,
                    .wrong = kDisk,
                    .weight = 0.7,
                    .title = "the server's layer has no place for this tensor",
                    .text = "The checkpoint keeps it in another form than the server builds the "
                            "layer: all experts in one tensor where it takes one tensor for each, "
                            "a scale that the scheme in config.json does not have, or a layer that "
                            "config.json does not quantise. Export it again in the server's form, "
                            "or update the server.",
                    .decide = "Whether the experts are stacked in the checkpoint, and "
                              "quantization_config.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = "vLLM"},
    {.id = "scale-not-loaded",
     .example = "RuntimeError: weight_scale of NAME was not fully loaded",
     .patterns = {"<before>was not fully loaded", "scale was not loaded for layer <name>",
                  "scales were not fully loaded"},
     .meanings = {{{.id = "quantised",
                    .rule = &kQuantisedPairs,
                    .wrong = kDisk,
                    .weight = 0.8,
                    .title = "config.json quantises a layer that has no scale in the files",
                    .text = "The layer is stored in full precision and not on the list of layers "
                            "that are left out (ignore, exclude_modules, modules_to_not_convert), "
                            "or its scales were lost. Add it to the list in the first case; "
                            "quantise again in the second.",
                    .decide = "The dtype of the layer's weight, and the list in config.json.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = "vLLM"},
    {.id = "scale-shapes",
     .example = "RuntimeError: dimensions of scale and zero-point are not consistent with input "
                "tensor",
     .patterns = {"dimensions of scale and zero-point are not consistent"},
     .meanings = {{{.id = "quantised",
                    .rule = &kQuantisedPairs,
                    .weight = 0.75,
                    .title = "scales or zero points are not as many as the weight's rows or groups",
                    .text = "One for the whole tensor stands where the loader takes one for each "
                            "channel, or the other way round: the scheme in config.json is not the "
                            "one of the files, or the loader made its scales before it read them.",
                    .decide = "The shapes of the scales against the scheme in config.json.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = "torch"},
};

}  // namespace

std::span<const MessageKind> engine_messages() {
  return kEngineMessages;
}

}  // namespace shw
