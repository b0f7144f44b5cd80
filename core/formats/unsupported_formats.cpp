#include "core/formats/unsupported_formats.h"

#include <algorithm>
#include <array>

#include "core/base/letter_case.h"
#include "core/formats/common/top_file.h"

namespace shw {
namespace {

// True for "pytorch_model-00001-of-00003.bin": one part, others may be missing.
bool is_one_of_several(std::string_view name) {
  constexpr std::string_view kEnd = ".bin", kOf = "-of-";
  if (!name.ends_with(kEnd)) return false;
  name.remove_suffix(kEnd.size());
  std::size_t at = name.rfind(kOf);
  if (at == std::string_view::npos || at == 0 || !is_digit(name[at - 1])) return false;
  std::string_view count = name.substr(at + kOf.size());
  bool is_number = !count.empty() && std::all_of(count.begin(), count.end(), is_digit);
  return is_number && count.find_first_not_of('0') != std::string_view::npos &&
         count.substr(count.find_first_not_of('0')) != "1";
}

// True for the per-rank file of accelerate's save_state: "random_states_0.pkl".
bool is_random_state(std::string_view name) {
  return name.starts_with("random_states_") && name.ends_with(".pkl");
}

template <std::size_t N>
bool ends_with_one_of(std::string_view name, const std::array<std::string_view, N>& endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

constexpr auto kOfChips =
    std::to_array<std::string_view>({".rknn", ".dlc", ".hef", ".serialized.bin"});
constexpr auto kOfMobiles = std::to_array<std::string_view>({".ncnn.bin", ".ncnn.param", ".mnn"});

constexpr auto kUnreadFormats =
    std::to_array<UnsupportedFormat>({
        {"a PaddlePaddle checkpoint (FlexCheckpoint)",
         [](std::string_view path, std::string_view name) {
           return is_at_top(path) && name.ends_with(".metadata") && !name.starts_with("__") &&
                  name.size() > 9 && name.front() >= '0' && name.front() <= '9';
         },
         ""},
        {"an incomplete Hugging Face model in torch.save files (.bin)",
         [](std::string_view path, std::string_view name) {
           return is_at_top(path) && (name.ends_with(".bin.index.json") || is_one_of_several(name));
         },
         "Download the files that its index names, or the missing parts."},
        {"an incomplete safetensors model (only its index, none of the files)",
         [](std::string_view path, std::string_view name) {
           return is_at_top(path) && name.ends_with(".safetensors.index.json");
         },
         "Download the files that the index names."},
        {"part of an ONNX model (its data file, without the .onnx)",
         [](std::string_view, std::string_view name) {
           return name.ends_with(".onnx_data") || name.ends_with(".onnx.data");
         },
         "Download the .onnx file, which lists the weights, into the same folder.", true},
        {"a TensorFlow checkpoint or saved model",
         [](std::string_view, std::string_view name) {
           return name == "saved_model.pb" || name == "variables.index" ||
                  name.find(".data-00000-of-") != std::string_view::npos;
         },
         "tf.train.load_checkpoint reads it.", true},
        {"a PaddlePaddle model",
         [](std::string_view, std::string_view name) {
           return ends_with_one_of(name, std::to_array<std::string_view>({".pdparams", ".pdopt"}));
         },
         "paddle.load reads it.", true},
        {"a TensorRT engine",
         [](std::string_view, std::string_view name) {
           return ends_with_one_of(name,
                                   std::to_array<std::string_view>({".engine", ".plan", ".trt"}));
         },
         "It is compiled for one GPU: open the checkpoint from which it was built.", true},
        {"a model compiled for one chip (RKNN, Qualcomm QNN, Hailo)",
         [](std::string_view, std::string_view name) { return ends_with_one_of(name, kOfChips); },
         "Its weights are laid out for that chip: open the checkpoint from which it was built.",
         true, true},
        {"a Core ML model",
         [](std::string_view path, std::string_view name) {
           return name.ends_with(".mlmodel") || path.find(".mlpackage/") != path.npos ||
                  path.find(".mlmodelc/") != path.npos ||
                  path.starts_with("Data/com.apple.CoreML/");
         },
         "coremltools.models.MLModel reads it. Its constants do not have the model's tensor names: "
         "open the checkpoint from which it was converted.",
         true, true},
        {"a model of ncnn or MNN",
         [](std::string_view, std::string_view name) { return ends_with_one_of(name, kOfMobiles); },
         "Its weights are fused and laid out for mobile devices: open the checkpoint from which it "
         "was converted.",
         true, true},
        {"part of an OpenVINO model (its layers are in an .xml)",
         [](std::string_view, std::string_view name) {
           return name.starts_with("openvino_") || name == "model.xml";
         },
         "openvino.Core().read_model reads it. Its constants may be fused: for the original names "
         "open the checkpoint from which it was converted.",
         true, true},
        {"a TensorFlow Lite model",
         [](std::string_view, std::string_view name) {
           return ends_with_one_of(name, std::to_array<std::string_view>({".tflite", ".litertlm"}));
         },
         "ai_edge_litert's Interpreter reads it.", true},
        {"a model of XGBoost",
         [](std::string_view, std::string_view name) { return name.ends_with(".ubj"); },
         "xgboost.Booster().load_model reads it.", true},
        {"a model of CatBoost",
         [](std::string_view, std::string_view name) { return name.ends_with(".cbm"); },
         "catboost.CatBoost().load_model reads it.", true},
        {"a pipeline of spaCy",
         [](std::string_view path, std::string_view) {
           return path.ends_with("vocab/strings.json");
         },
         "spacy.load reads it.", true},
        {"a stream of EasyLM (msgpack)",
         [](std::string_view, std::string_view name) {
           return name.starts_with("streaming_params") || name.starts_with("streaming_train_state");
         },
         "EasyLM's StreamingCheckpointer reads it; flax.serialization.to_bytes(PARAMS) written to "
         "a file that ends in .msgpack is read here.",
         true},
        {"a training run's folder (Trainer's or accelerate's) without a model",
         [](std::string_view path, std::string_view name) {
           return is_at_top(path) && (name == "trainer_state.json" || is_random_state(name));
         },
         "Look for model.safetensors, its shards or pytorch_model.bin where it was saved. To open "
         "optimizer.pt or optimizer.bin, give its path.",
         true},
        {"a file of joblib",
         [](std::string_view, std::string_view name) { return name.ends_with(".joblib"); },
         "pickle.dump(joblib.load(FILE), NEW) writes its arrays in a supported form.", true},
        {"a bare pickle in which no arrays were found",
         [](std::string_view, std::string_view name) {
           return ends_with_one_of(name, std::to_array<std::string_view>({".pkl", ".pickle"}));
         },
         "Shardwright runs no pickle code and reads only arrays in dicts, lists and modules. For a "
         "joblib file, pickle.dump(joblib.load(FILE), NEW) writes such a pickle.",
         true},
        {"a folder with several torch.save files, none of which is clearly the model",
         [](std::string_view path, std::string_view name) {
           return is_at_top(path) && (name.ends_with(".pt") || name.ends_with(".pth") ||
                                      name.ends_with(".bin") || name.ends_with(".ckpt"));
         },
         "Give the path of one of them.", true},
    });

}  // namespace

std::span<const UnsupportedFormat> unsupported_formats() {
  return kUnreadFormats;
}

}  // namespace shw
