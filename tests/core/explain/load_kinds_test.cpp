// Kinds of what a run, a server or a converter does at a load, each with a message that its row was
// not written from, and with messages that look alike and mean something else.
#include <doctest/doctest.h>

#include "core/explain/error_text.h"
#include "core/explain/support.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("explain: what a resumed run lacks is told by the line of code above a KeyError") {
  check_sentences({
      {"    self.step = override_attributes['step']\nKeyError: 'step'", "accelerate",
       "accelerate-step", "random-state"},
      {"  config_type = _state_dict_type_to_config[self._type]\nKeyError: None", "FSDP",
       "fsdp-state-type", "order-of-steps"},
      {"TypeError: cannot unpack non-iterable Namespace object", "Megatron", "args-not-returned",
       "wrong-path"},
      {"ValueError: The sharded dimension must be equal to the number of devices passed to "
       "PmapSharding. Got sharded dimension 0 with value 4",
       "JAX", "pmap-devices", "replicated-state"},
  });
  CHECK(form_of("KeyError: 'step'") == "optimizer-state-key");
  CHECK(form_of("TypeError: cannot unpack non-iterable NoneType object") != "args-not-returned");
}

TEST_CASE("explain: files and settings of another machine or version are told by their names") {
  check_sentences({
      {"FileNotFoundError: src path does not exist or it is not a path in nemo file. src value I "
       "got was: vocab.txt",
       "NeMo", "artifact-path", "other-machine"},
      {"AttributeError: 'dict' object has no attribute 'to_dict'", "transformers", "config-is-dict",
       "other-version"},
      {"FileNotFoundError: Config file /run/global_step_9/actor/fsdp_config.json does not exist",
       "verl", "no-fsdp-config", "wrong-path"},
  });
  CHECK(form_of("AttributeError: 'dict' object has no attribute 'foo'") != "config-is-dict");
}

TEST_CASE("explain: a draft model and old names of norms are told by the names of tensors") {
  check_sentences({
      {"KeyError: 'd2t'", "", "draft-key", "draft-model"},
      {"KeyError: 'model.midlayer.mlp.gate_up_proj.weight'", "", "draft-key", "draft-model"},
      {"ValueError: Can not map tensor 'encoder.layer.3.output.LayerNorm.gamma'", "llama.cpp",
       "gguf-convert-gamma", "older-format"},
  });
  CHECK(form_of("KeyError: 'model.layers.0.mlp.gate_up_proj.weight'") != "draft-key");
  CHECK(form_of("ValueError: Can not map tensor 'model.layers.0.extra.weight'") == "gguf-convert");
}

TEST_CASE("explain: what quantised or offloaded weights cannot do is told by the refusal") {
  check_sentences({
      {"Blockwise quantization only supports 16/32-bit floats, but got torch.uint8", "",
       "quantised-twice", "quantised"},
      {"ValueError: Marlin does not support weight_bits = uint8b128. Only types = [] are supported",
       "", "kernel-not-here", "older-gpu"},
      {"RuntimeError: Base model not in input tensors", "mergekit", "base-lacks-tensor", "recipe"},
      {"line 414, in _tobytes\n    tensor = tensor.to(\"cpu\")\nNotImplementedError: Cannot copy "
       "out of meta tensor; no data!",
       "", "offloaded-saved", "offloaded"},
      {"[E:onnxruntime:, inference_session.cc:2742 operator()] Exception during initialization: "
       "graph.cc:77 node->HasShape() was false.",
       "ONNX Runtime", "onnx-own-check", "older-program"},
  });
  CHECK(form_of("NotImplementedError: Cannot copy out of meta tensor; no data!") == "meta-tensor");
}

TEST_CASE("explain: a file for another program, and a path that is taken for a name") {
  check_sentences({
      {"RuntimeError: '/m/ggml-small.bin' is not a valid preconverted model. Choose one of "
       "['tiny', 'small']",
       "", "path-taken-for-name", "wrong-path"},
      {"ValueError: Unexpected text model architecture type in GGUF file: 'llama'", "ComfyUI",
       "gguf-of-other-node", "other-loader"},
      {"ValueError: Unexpected architecture type in GGUF file, expected one of flux, sd1, sdxl, "
       "t5encoder but got 'wan'",
       "ComfyUI", "gguf-of-other-node", "other-loader"},
      {"llama_model_load: error loading model: unknown model architecture: ''", "llama.cpp",
       "gguf-without-architecture", "other-program"},
      {"Unable to quantize model of type <class 'mlx_lm.models.foo.Router'>", "MLX",
       "mlx-layer-not-quantised", "older-program"},
      {"ValueError: No model is loaded! Select one in the Model tab.", "", "no-model-loaded",
       "details-missing"},
  });
  CHECK(form_of("unknown model architecture: 'newllm'") == "unknown-architecture");
}

TEST_CASE("explain: what OpenVINO and Keras say of files that do not belong together") {
  check_sentences({
      {"RuntimeError: Converting input model Incorrect weights in bin file!", "OpenVINO",
       "openvino-weights", "other-save"},
      {"RuntimeError: Unable to read the model: /m/a.xml Please check that model format: xml is "
       "supported and the model is correct.",
       "OpenVINO", "openvino-not-read", "wrong-path"},
      {"read_model(): incompatible function arguments. The following argument types are supported:",
       "", "native-arguments", "other-version"},
      {"RuntimeError: basic_ios::clear: iostream error", "", "stream-failed", "unfinished-save"},
      {"TypeError: Expected float32, got {'type': 'ndarray', 'value': [1.0]} of type 'dict'",
       "Keras", "keras-array-in-config", "array-in-config"},
  });
}

TEST_CASE("explain: a server's folder, a native library, and random states of one rank") {
  check_sentences({
      {"tritonclient.utils.InferenceServerException: failed to load 'ner', no version is available",
       "Triton", "triton-no-version", "folder-layout"},
      {"| Ner | - | Not loaded: No model version was found |", "Triton", "triton-no-version",
       "folder-layout"},
      {"AttributeError: function 'llama_kv_clear' not found. Did you mean: 'llama_kv'?", "",
       "native-function", "other-version"},
      {"FileNotFoundError: [Errno 2] No such file or directory: 'out/step-10/random_states_3.pkl'",
       "", "random-states-of-rank", "random-state"},
      {"ValueError: Key \"block/~/linear\" contains a forbidden character", "", "character-in-key",
       "name-not-allowed"},
  });
  CHECK(form_of("ValueError: Failed to recognize model type!") == "kind-not-determined");
}

TEST_CASE("explain: a folder whose files have other names than the program looks for") {
  check_sentences({
      {"FileNotFoundError: Could not find model in TheBloke/Llama-2-7b-Chat-GPTQ", "",
       "quantised-file-name", "wrong-path"},
      {"FileNotFoundError: [Errno 2] No such file or directory: '/m/quant_config.json'", "",
       "quantiser-file", "other-version"},
      {"ValueError: /m/best.pt is not a valid checkpoint since the required key: model_cfg is "
       "missing",
       "", "keys-of-other-form", "other-form"},
      {"ValueError:  ## Could not find lm_head.weight in model", "", "tied-output", "tied"},
  });
  CHECK(form_of("FileNotFoundError: [Errno 2] No such file or directory: '/m/config.json'") !=
        "quantiser-file");
}

TEST_CASE("explain: a call in a traceback's line of code is not a tensor's name") {
  CHECK(form_of("    state = dist.distributed_c10d.pack(states)\n"
                "TypeError: pack() missing 1 required positional argument: 'group'") ==
        "init-arguments");
}
