// Messages of programs that read a form of their own: MLX, CTranslate2, ONNX, TensorRT-LLM.
#include "core/explain/message_kinds.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::string_view kMlx = "MLX";

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

std::span<const MessageKind> engine_messages() {
  return kEngineMessages;
}

}  // namespace shw
